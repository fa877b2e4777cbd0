package conformance

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// WriteGolden writes vectors to a file as the fixtures that they are: with their
// scripts, which hold the numbers of the ABI as they are today. Random numbers are left
// out, as another version may have others.
func WriteGolden(file string, vectors []Vector) error {
	lines := []string{}
	for _, v := range vectors {
		if strings.HasPrefix(v.Name, "random") {
			continue
		}
		c, err := v.Fixture()
		if err != nil {
			return err
		}
		keys := map[string]any{"config": json.RawMessage(c.Config), "want": c.Want}
		for key, text := range v.keys {
			if _, replaced := keys[key]; !replaced {
				keys[key] = text
			}
		}
		b, err := json.Marshal(keys)
		if err != nil {
			return err
		}
		lines = append(lines, string(b))
	}
	return os.WriteFile(file, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644)
}

// ReadGolden reads what WriteGolden wrote.
func ReadGolden(file string) ([]fixture.Case, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var list []map[string]json.RawMessage
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	cases := make([]fixture.Case, len(list))
	for i, keys := range list {
		v, err := parse(keys, nil)
		if err != nil {
			return nil, err
		}
		cases[i] = v.Case
	}
	return cases, nil
}
