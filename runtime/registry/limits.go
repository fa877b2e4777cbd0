package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

const page = 64 << 10 // bytes

// limitKeys are the keys of limits, with their rows of the table.
var limitKeys = func() map[string]plugin.Limit {
	keys := map[string]plugin.Limit{}
	for _, l := range plugin.Limits {
		if name, in := strings.CutPrefix(l.File, "limits."); in {
			keys[name] = l
		}
	}
	return keys
}()

// readLimits reads what one call of a module may use. Its time is the key timeout.
func readLimits(s *settings, v json.RawMessage) error {
	file, err := decode[map[string]json.RawMessage](v, `an object such as {"memory": "64Mi"}`)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(file)) {
		limit, known := limitKeys[name]
		switch {
		case name == "timeout":
			return errors.New("timeout: is a key beside limits, not in it")
		case !known:
			return unknown("key", name, slices.Sorted(maps.Keys(limitKeys)))
		}
		read := readNumber
		if name == "memory" {
			read = readMemory
		}
		if *limit.Of(&s.Limits), err = read(file[name], limit.Max); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func readNumber(v json.RawMessage, most int64) (n int64, err error) {
	if n, err = decode[int64](v, "a whole number"); err == nil && (n < 1 || n > most) {
		err = fmt.Errorf("%d is not between 1 and %d", n, most)
	}
	return n, err
}

// readMemory reads a size as Kubernetes writes it.
func readMemory(v json.RawMessage, most int64) (int64, error) {
	const want = `a size such as "64Mi"`
	text, err := decode[string](v, want)
	if err != nil {
		return 0, err
	}
	wrong := fmt.Errorf("%.64q is not %s", text, want)
	if _, exponent, _ := strings.Cut(strings.ToLower(text), "e"); len(text) > 32 || len(exponent) > len("-99") {
		return 0, wrong // the parser would compute with as many digits
	}
	size, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, wrong
	}
	memory := size.Value()
	if memory > most || memory < page || memory%page != 0 {
		err = fmt.Errorf("%.64q is not a multiple of 64Ki up to 1Gi", text)
	}
	return memory, err
}
