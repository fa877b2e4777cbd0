package main

import (
	"github.com/wasmproxy/wasmproxy/plugins-wasm/internal/json"
	wp "github.com/wasmproxy/wasmproxy/sdk"
)

const schema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"memoryThrottlingFactor":{"type":"number","exclusiveMinimum":0,"maximum":1},` +
	`"memoryReservationPolicy":{"enum":["None","TieredReservation"]},` +
	`"nodeAllocatableMemory":{"type":"integer","minimum":1},` +
	`"pressure":{"type":"object","additionalProperties":false,"properties":{` +
	`"raiseAbove":{"type":"integer","minimum":1,"maximum":100},` +
	`"lowerBelow":{"type":"integer","minimum":0,"maximum":100}}}}}`

// whole is a throttling factor of 1.
const whole = 10_000

// settings are what the configuration says. The first two keys are named as in kubelet's
// configuration.
type settings struct {
	factor      int64 // memoryThrottlingFactor, in ten-thousandths
	reserve     bool  // memoryReservationPolicy is TieredReservation
	allocatable int64 // bytes; 0 is the node's memory
	adapt       bool  // to memory.pressure
	raiseAbove  int64 // percent of the time
	lowerBelow  int64
}

var config settings

// configure begins anew: it also forgets what earlier calls left in memory.
func configure(text string) (err error) {
	said, known, next, first, complete, late = nil, table{}, table{}, 0, false, false
	config = settings{reserve: true}
	policy, _, err := json.Find(text, "memoryReservationPolicy")
	if err != nil {
		return err
	}
	config.reserve = policy != "None"
	factor, ok, _ := json.Find(text, "memoryThrottlingFactor")
	if !ok {
		factor = "0.9" // kubelet's default
	}
	if config.factor, ok = parseFactor(factor); !ok {
		return wp.Failure("config: memoryThrottlingFactor: " + factor + " is not a number above 0 and up to 1 with at most four decimals")
	}
	if config.allocatable, err = number(text, 0, "nodeAllocatableMemory"); err != nil {
		return err
	}
	_, config.adapt, _ = json.Find(text, "pressure")
	if config.raiseAbove, err = number(text, 10, "pressure", "raiseAbove"); err != nil {
		return err
	}
	if config.lowerBelow, err = number(text, 1, "pressure", "lowerBelow"); err != nil {
		return err
	}
	if config.lowerBelow >= config.raiseAbove {
		return wp.Failure("config: pressure: lowerBelow " + wp.FormatInt(config.lowerBelow) +
			" must be less than raiseAbove " + wp.FormatInt(config.raiseAbove))
	}
	return nil
}

// number returns the whole number under a path of keys, or else what holds without.
func number(text string, without int64, path ...string) (int64, error) {
	digits, ok, _ := json.Find(text, path...)
	if !ok {
		return without, nil
	}
	n, ok := wp.ParseInt(digits)
	if !ok {
		return 0, wp.Failure("config: " + path[len(path)-1] + ": write " + digits + " as a whole number, in digits alone")
	}
	return n, nil
}

// parseFactor reads a number above 0 and up to 1, in ten-thousandths.
func parseFactor(text string) (factor int64, ok bool) {
	if n, ok := wp.ParseInt(text); ok {
		return n * whole, n == 1
	}
	if len(text) < 3 || len(text) > 6 {
		return 0, false
	}
	if text[:2] != "0." && text[:2] != "1." {
		return 0, false
	}
	decimals := text[2:] + "0000"
	factor, ok = wp.ParseInt(text[:1] + decimals[:4])
	return factor, ok && factor > 0 && factor <= whole
}
