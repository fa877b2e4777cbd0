package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

const page = 64 << 10 // bytes

// limitKeys are the keys of limits.
var limitKeys = map[string]func(*abi.Limits, json.RawMessage) error{
	"fuel":       func(l *abi.Limits, v json.RawMessage) error { return readLimit(&l.Fuel, v, plugin.MaxFuel) },
	"host-calls": func(l *abi.Limits, v json.RawMessage) error { return readLimit(&l.HostCalls, v, plugin.MaxHostCalls) },
	"memory":     readMemory,
	"tick-host-calls": func(l *abi.Limits, v json.RawMessage) error {
		return readLimit(&l.TickHostCalls, v, plugin.MaxHostCalls)
	},
	"tick-fuel": func(l *abi.Limits, v json.RawMessage) error { return readLimit(&l.TickFuel, v, plugin.MaxFuel) },
}

// readLimits reads what one call of a module may use. Its time is the key timeout.
func readLimits(s *settings, v json.RawMessage) error {
	file, err := decode[map[string]json.RawMessage](v, `an object such as {"memory": "64Mi"}`)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(file)) {
		read, known := limitKeys[name]
		switch {
		case name == "timeout":
			return errors.New("timeout: is a key beside limits, not in it")
		case !known:
			return unknown("key", name, slices.Sorted(maps.Keys(limitKeys)))
		}
		if err := read(&s.Limits, file[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func readLimit(limit *int64, v json.RawMessage, most int64) (err error) {
	if *limit, err = decode[int64](v, "a whole number"); err == nil && (*limit < 1 || *limit > most) {
		return fmt.Errorf("%d is not between 1 and %d", *limit, most)
	}
	return err
}

// readMemory reads a size as Kubernetes writes it, in whole numbers of bytes, Ki, Mi or Gi.
func readMemory(l *abi.Limits, v json.RawMessage) error {
	const want = `a size such as "64Mi"`
	text, err := decode[string](v, want)
	if err != nil {
		return err
	}
	digits, shift := text, 0
	for i, unit := range []string{"Ki", "Mi", "Gi"} {
		if number, found := strings.CutSuffix(text, unit); found {
			digits, shift = number, 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return fmt.Errorf("%.64q is not %s", text, want)
	}
	if l.Memory = int64(n << shift); n<<shift > plugin.MaxMemory || l.Memory < page || l.Memory%page != 0 {
		return fmt.Errorf("%.64q is not a multiple of 64Ki up to 1Gi", text)
	}
	return nil
}
