package conformance

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
	"github.com/wasmproxy/wasmproxy/sdk/internal/guest"
)

var record = flag.Bool("golden", false, "write the golden guests and vectors of this ABI version, which has none yet")

// goldenLanguages are those whose guests are small.
var goldenLanguages = []string{"wat", "tinygo", "rust", "c"}

// typed are programs that use an SDK, by their names beside the guests, with what
// build.sh makes each of.
var typed = map[string][]string{
	"typed-tinygo": {"../../toolchain/plugin.sh", "../../../sdk/internal/calls", "OUT"},
	"typed-rust":   {"build.sh", "rust", "OUT", "../typed/calls.rs"},
	"typed-c":      {"build.sh", "c", "OUT", "../typed/calls.c"},
}

// goldenFolder is that of this version of the ABI.
func goldenFolder() string {
	return filepath.Join(folder, "golden", fmt.Sprintf("%d.%d", abi.Version>>16, abi.Version&0xffff))
}

// TestGolden loads guests that were built for earlier versions of the ABI, and for this
// one, and plays them the vectors of their time.
func TestGolden(t *testing.T) {
	if *record {
		recordGolden(t)
	}
	versions, err := filepath.Glob(filepath.Join(folder, "golden", "*"))
	if err != nil || !slices.Contains(versions, goldenFolder()) {
		t.Fatalf("%q lacks %s, error %v: run this test with -golden", versions, goldenFolder(), err)
	}
	for _, version := range versions {
		cases, err := readGolden(filepath.Join(version, "vectors.json"))
		if err != nil || len(cases) == 0 {
			t.Fatalf("%s: %d vectors: %v", version, len(cases), err)
		}
		for name := range typed {
			t.Run(filepath.Base(version)+"/"+name, func(t *testing.T) {
				guest.Play(t, filepath.Join(version, name+".wasm"), filepath.Join(version, "typed.json"))
			})
		}
		for _, language := range goldenLanguages {
			t.Run(filepath.Base(version)+"/"+language, func(t *testing.T) {
				p := guest.Open(t, filepath.Join(version, language+".wasm"))
				p.Keep(t, empty)
				for _, c := range cases {
					if err := c.Want.Compare(p.Answer(t, c)); err != nil {
						t.Errorf("%s: %v", c.Name, err)
					}
				}
			})
		}
	}
}

func recordGolden(t *testing.T) {
	t.Helper()
	dir := goldenFolder()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, language := range goldenLanguages {
		guest.Run(t, ".", nil, filepath.Join(folder, "guest", "build.sh"), language, filepath.Join(dir, language+".wasm"))
	}
	recordTyped(t, dir)
	modules, err := filepath.Glob(filepath.Join(dir, "*.wasm"))
	for _, file := range modules { // linkers make them programs
		err = errors.Join(err, os.Chmod(file, 0o644))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := writeGolden(filepath.Join(dir, "vectors.json"), allVectors(t)); err != nil {
		t.Fatal(err)
	}
}

// recordTyped builds the programs that use an SDK, beside the script that builds guests.
func recordTyped(t *testing.T, dir string) {
	t.Helper()
	dir, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Abs(filepath.Join(folder, "guest"))
	if err != nil {
		t.Fatal(err)
	}
	for name, command := range typed {
		command = slices.Clone(command)
		command[slices.Index(command, "OUT")] = filepath.Join(dir, name+".wasm")
		guest.Run(t, scripts, nil, filepath.Join(scripts, command[0]), command[1:]...)
	}
	fixtures, err := os.ReadFile(filepath.Join(folder, "typed", "calls.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "typed.json"), fixtures, 0o644); err != nil {
		t.Fatal(err)
	}
}

// writeGolden writes vectors to a file as the fixtures that they are: with their
// scripts, which hold the numbers of the ABI as they are today. Random numbers are left
// out, as another version may have others.
func writeGolden(file string, vectors []Vector) error {
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

// readGolden reads what writeGolden wrote.
func readGolden(file string) ([]fixture.Case, error) {
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
