package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The most that an operator can allow.
const (
	maxTimeout = time.Minute // half of what kubelet waits for a call
	maxFuel    = 10_000_000_000
	maxMemory  = 1 << 30
	maxCalls   = 100_000
	page       = 64 << 10
)

// limitKeys are the keys of limits.
var limitKeys = map[string]func(*abi.Limits, json.RawMessage) error{"fuel": readFuel, "host-calls": readHostCalls, "memory": readMemory}

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
		if err := read(&s.limits, file[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func readFuel(l *abi.Limits, v json.RawMessage) (err error) {
	if l.Fuel, err = decode[int64](v, "a whole number"); err == nil && (l.Fuel < 1 || l.Fuel > maxFuel) {
		return fmt.Errorf("%d is not between 1 and %d", l.Fuel, int64(maxFuel))
	}
	return err
}

func readHostCalls(l *abi.Limits, v json.RawMessage) (err error) {
	if l.HostCalls, err = decode[int64](v, "a whole number"); err == nil && (l.HostCalls < 1 || l.HostCalls > maxCalls) {
		return fmt.Errorf("%d is not between 1 and %d", l.HostCalls, maxCalls)
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
	if l.Memory = int64(n << shift); n<<shift > maxMemory || l.Memory < page || l.Memory%page != 0 {
		return fmt.Errorf("%.64q is not a multiple of 64Ki up to 1Gi", text)
	}
	return nil
}
