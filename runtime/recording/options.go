package recording

import (
	"fmt"
	"time"
)

// Options bound a recording.
type Options struct {
	For   time.Duration `json:"for_ns"`
	Max   int64         `json:"max"`   // bytes of all lines, but the last
	Rate  int           `json:"rate"`  // calls in a second
	Call  int64         `json:"call"`  // bytes that a plugin asks and is answered in a call, about
	Env   bool          `json:"env"`   // with the names of environment variables
	Ticks bool          `json:"ticks"` // with Tick and Synchronize
}

// DefaultOptions are those of the command.
func DefaultOptions() Options {
	return Options{For: 10 * time.Minute, Max: 16 << 20, Rate: 50, Call: 64 << 10}
}

// The most that a recording may ask for.
const (
	MaxFor  = 24 * time.Hour
	MaxMax  = 1 << 30
	MaxRate = 10_000
	MaxCall = 1 << 20
)

// Check returns an error for the first option that is out of bounds. It begins with the option's flag.
func (o Options) Check() error {
	switch {
	case o.For <= 0 || o.For > MaxFor:
		return fmt.Errorf("--for: must be greater than 0 and at most %v, got %v", MaxFor, o.For)
	case o.Max <= 0 || o.Max > MaxMax:
		return fmt.Errorf("--max: must be greater than 0 and at most %d bytes, got %d", MaxMax, o.Max)
	case o.Rate <= 0 || o.Rate > MaxRate:
		return fmt.Errorf("--rate: must be greater than 0 and at most %d, got %d", MaxRate, o.Rate)
	case o.Call <= 0 || o.Call > MaxCall:
		return fmt.Errorf("--max-call: must be greater than 0 and at most %d bytes, got %d", MaxCall, o.Call)
	}
	return nil
}
