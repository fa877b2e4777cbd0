package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
)

// trap is what a host function panics with to end the guest's call.
type trap struct {
	reason string
	class  observe.Class
}

func trapf(format string, args ...any) *trap {
	return &trap{fmt.Sprintf(format, args...), observe.ClassTrap}
}

// Error returns the reason.
func (t *trap) Error() string { return t.reason }

// explain says in one printable line why a call into a guest ended with err,
// with what the guest printed last. wazero's own text holds a stack trace.
func (c *call) explain(ctx context.Context, err error) error {
	c.finish(ctx) // what it printed last may have no end
	var (
		ended *stop
		ours  *trap
	)
	switch {
	case errors.As(err, &ended):
		return fmt.Errorf("%w%s", ended.error, c.output.printed())
	case errors.As(err, &ours):
		return &plugin.ClassError{Class: ours.class, Err: errors.New(ours.reason + c.output.printed())}
	}
	text, trace, _ := strings.Cut(err.Error(), "\n")
	text, panicked := strings.CutSuffix(text, " (recovered by wazero)")
	if panicked {
		hook, _, about := c.about()
		c.observer().Observe(ctx, &observe.Panicked{
			During: "a host function", Plugin: c.of.id, Hook: hook, Object: about,
			Panic: plugin.Printable(text, maxReason), Stack: trace,
		})
		return fmt.Errorf("a host function panicked: %s", plugin.Printable(text, maxReason))
	}
	if _, reason, ok := strings.Cut(text, "wasm error: "); ok {
		text = reason
	}
	if c.meter.overflowed() {
		text = fmt.Sprintf("stack overflow: used more than %d bytes of stack", fuel.DefaultStack)
	}
	text = plugin.Printable(text+where(trace), maxReason)
	return &plugin.ClassError{Class: observe.ClassTrap, Err: errors.New("trapped: " + text + c.output.printed())}
}

// maxFrames is how many functions a trap names.
const maxFrames = 5

// where names the functions at the top of wazero's stack trace, as " in boost, called by wp_hook", or returns "". A module
// without names has a number in the place of the first, and the others are left out. A function that calls itself is named once.
func where(trace string) string {
	_, frames, ok := strings.Cut(trace, "wasm stack trace:\n\t")
	if !ok {
		return ""
	}
	text, last := "", ""
	for i, frame := range strings.SplitN(frames, "\n\t", maxFrames+1) {
		name := strings.TrimPrefix(frame, ".")
		name = name[:max(0, strings.LastIndex(name, "("))]
		switch {
		case i == maxFrames, i > 0 && (name == "" || name[0] == '$'):
			return text
		case i == 0:
			text = " in " + name
		case name != last:
			text += ", called by " + name
		}
		last = name
	}
	return text
}

// verdict judges what wp_hook returned.
func (c *call) verdict(code int32) error {
	refusal := c.adj.Rejection()
	switch {
	case code < 0 && c.reason != "":
		return errors.New(c.adj.WhyRefused("failed: "+c.reason, abi.Errno(code)))
	case code < 0:
		return fmt.Errorf("failed without a reason: it returned %d (%w)%s", code, abi.Errno(code), c.adj.WhyRefused("", abi.Errno(code)))
	case code == abi.Reject && refusal != nil:
		return refusal
	case code == abi.Reject:
		return fmt.Errorf("returned %d, which is for after a call of reject", code)
	case code != abi.Continue:
		return fmt.Errorf("returned %d, which has no meaning", code)
	case refusal != nil:
		return fmt.Errorf("called reject and then returned %d instead of %d", code, abi.Reject)
	}
	return nil
}
