package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

var qosClasses = []string{"Guaranteed", "Burstable", "BestEffort"}

// ParseMatch reads a match as an operator writes it, in JSON. The error names the
// key. One that is not known is an error: who writes it wants fewer pods than
// would match without it.
func ParseMatch(b []byte) (abi.Match, error) {
	var m abi.Match
	var file map[string]json.RawMessage
	if err := json.Unmarshal(b, &file); err != nil {
		return m, fmt.Errorf("%.64s is not an object", b)
	}
	read := map[string]func(json.RawMessage) error{
		"namespaces": globs(&m.Namespaces), "qos": globs(&m.QoS), "containers": globs(&m.Containers),
		"runtime-handlers": globs(&m.RuntimeHandlers), // as the file's other keys, and not as in a manifest
		"labels":           values(&m.Labels), "annotations": values(&m.Annotations),
	}
	for _, key := range slices.Sorted(maps.Keys(file)) {
		if read[key] == nil {
			return abi.Match{}, fmt.Errorf("unknown key %.64q; known are namespaces, qos, runtime-handlers, containers, labels, annotations", key)
		}
		if err := read[key](file[key]); err != nil {
			return abi.Match{}, fmt.Errorf("%s: %w", key, err)
		}
	}
	return m, CheckMatch(m)
}

func globs(into *[]string) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		if err := json.Unmarshal(v, into); err != nil {
			return fmt.Errorf("%.64s is not a list of globs", v)
		}
		if *into != nil && len(*into) == 0 {
			return errors.New("is empty and would match nothing")
		}
		return nil
	}
}

func values(into *map[string]string) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		if err := json.Unmarshal(v, into); err != nil {
			return fmt.Errorf("%.64s is not an object of keys and values", v)
		}
		return nil
	}
}

// CheckMatch says what is wrong with a match that Matches could not judge, or
// that would fit nothing for ever.
func CheckMatch(m abi.Match) error {
	for key, list := range map[string][]string{"namespaces": m.Namespaces, "runtime-handlers": m.RuntimeHandlers, "containers": m.Containers} {
		for _, glob := range list {
			if _, err := path.Match(strings.TrimPrefix(glob, "!"), ""); err != nil {
				return fmt.Errorf("%s: %.64q is not a glob", key, glob)
			}
		}
	}
	for _, class := range m.QoS {
		if !slices.Contains(qosClasses, strings.TrimPrefix(class, "!")) {
			return fmt.Errorf("qos: %.64q is none of %s", class, strings.Join(qosClasses, ", "))
		}
	}
	return nil
}
