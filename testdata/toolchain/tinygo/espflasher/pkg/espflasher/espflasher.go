// Package espflasher takes the place of tinygo.org/x/espflasher when TinyGo is
// built here. That module writes firmware to ESP32 boards over a serial line,
// which no WebAssembly build does, and not every module proxy serves it. The
// package declares what TinyGo's command calls and refuses all of it.
package espflasher

import (
	"errors"
	"io"
)

var errNoFlashing = errors.New("flashing ESP32 boards is not part of this build of tinygo")

// StdoutLogger would report progress to W.
type StdoutLogger struct{ W io.Writer }

// ResetMode would say how a board is reset.
type ResetMode int

// ResetUSBJTAG would reset a board by its USB JTAG unit.
const ResetUSBJTAG ResetMode = 0

// Options would say how a board is flashed.
type Options struct {
	Compress  bool
	Logger    *StdoutLogger
	ResetMode ResetMode
}

// DefaultOptions returns options that New refuses.
func DefaultOptions() *Options { return &Options{} }

// Flasher would be a connection to a board. There is none.
type Flasher struct{}

// New always fails.
func New(string, *Options) (*Flasher, error) { return nil, errNoFlashing }

// Close does nothing.
func (*Flasher) Close() error { return nil }

// ChipName returns "".
func (*Flasher) ChipName() string { return "" }

// FlashImage always fails.
func (*Flasher) FlashImage([]byte, uint32, func(int, int)) error { return errNoFlashing }

// EraseFlash always fails.
func (*Flasher) EraseFlash(func(int, int)) error { return errNoFlashing }

// Reset does nothing.
func (*Flasher) Reset() {}
