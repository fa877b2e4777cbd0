package main

import (
	wp "github.com/wasmproxy/wasmproxy/sdk"
	"github.com/wasmproxy/wasmproxy/sdk/json"
	"github.com/wasmproxy/wasmproxy/sdk/quantity"
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
func configure(text string) error {
	said, known, next, first, complete, late = nil, table{}, table{}, 0, false, false
	o := json.Parse(text)
	config = settings{
		factor:      o.Parsed("memoryThrottlingFactor", parseFactor, whole/10*9), // kubelet's default
		reserve:     o.OneOf("memoryReservationPolicy", "TieredReservation", "None", "TieredReservation") == "TieredReservation",
		allocatable: o.Int("nodeAllocatableMemory", 1, 1<<63-1, 0),
		adapt:       o.Has("pressure"),
	}
	pressure := o.Object("pressure")
	config.raiseAbove = pressure.Int("raiseAbove", 1, 100, 10)
	config.lowerBelow = pressure.Int("lowerBelow", 0, 100, 1)
	if config.lowerBelow >= config.raiseAbove {
		pressure.Fail("", "lowerBelow "+wp.FormatInt(config.lowerBelow)+" must be less than raiseAbove "+wp.FormatInt(config.raiseAbove))
	}
	if err := o.Err(); err != nil {
		return wp.Failure("config: " + err.Error())
	}
	return nil
}

// parseFactor reads a number above 0 and up to 1, in ten-thousandths.
func parseFactor(text string) (int64, error) {
	factor, err := quantity.Decimal(text, 4)
	if err != nil || factor == 0 || factor > whole {
		return 0, wp.Failure(text + " is not a number above 0 and up to 1 with at most four decimals")
	}
	return factor, nil
}
