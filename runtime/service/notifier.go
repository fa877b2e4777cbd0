package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	sd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// closeTime is what the proxy may need at its end beyond the drain timeout: to close
// plugins and connections.
const closeTime = 30 * time.Second

// checksPerWatchdog is how often the proxy checks itself in the time of systemd's watchdog.
// One check that takes long is not the end.
const checksPerWatchdog = 3

// maxWaiting is how many messages may wait to be sent. There are some at the start and at the end, and one for each set of
// plugins.
const maxWaiting = 64

// Notifier is a sink of events that tells systemd the state of the proxy.
type Notifier struct {
	observer observe.Observer
	states   chan string // to be sent

	stopping atomic.Bool
}

// NewNotifier returns a Notifier that is yet to Run. The observer takes what goes wrong.
func NewNotifier(observer observe.Observer) *Notifier {
	n := &Notifier{observer: observer, states: make(chan string, maxWaiting)}
	n.states <- "STATUS=" + noPlugins // until the first plugin is loaded, before the proxy serves or later
	return n
}

// Wants implements observe.Observer.
func (n *Notifier) Wants(observe.Kind) bool { return false }

// Observe implements observe.Observer. It does not wait for systemd.
func (n *Notifier) Observe(ctx context.Context, e observe.Event) {
	var states []string
	switch e := e.(type) {
	case *observe.Serving:
		states = []string{sd.SdNotifyReady}
	case *observe.BypassOn:
		states = []string{"STATUS=Serving calls. Plugins are bypassed: every call passes as it came."}
	case *observe.GenerationActive:
		status := noPlugins
		if len(e.Plugins) > 0 {
			status = fmt.Sprintf("Serving calls. %d plugins are active: %s.", len(e.Plugins), strings.Join(e.Plugins, ", "))
		}
		if len(e.Refusing) > 0 {
			status += " Calls are refused for plugins that are not loaded: " + strings.Join(e.Refusing, ", ") + "."
		}
		states = []string{"STATUS=" + status}
	case *observe.NoPlugins, *observe.BypassOff:
		states = []string{"STATUS=" + noPlugins}
	case *observe.Stopping:
		n.stopping.Store(true)
		states = []string{
			sd.SdNotifyStopping, "STATUS=Stopping. Calls in flight have " + e.DrainTimeout.String() + " to finish.",
			fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (e.DrainTimeout + closeTime).Microseconds()),
		}
	default:
		return
	}
	select {
	case n.states <- strings.Join(states, "\n"):
	default:
		n.observer.Observe(ctx, &observe.NotifyFailed{Err: errors.New("systemd does not take messages, and too many wait")})
	}
}

const noPlugins = "Serving calls. No plugins are active."

// Run sends messages until ctx is done. If systemd watches the process it also sends a sign
// of life each time that check succeeds, which must end with its context. While the proxy stops
// the check does not count: no connection is accepted any more, and the drain timeout bounds
// that time.
func (n *Notifier) Run(ctx context.Context, check func(context.Context) error) {
	limit, err := sd.SdWatchdogEnabled(false)
	if err != nil {
		n.observer.Observe(ctx, &observe.NotifyFailed{Err: err})
	}
	var tick <-chan time.Time
	if limit > 0 {
		ticker := time.NewTicker(limit / checksPerWatchdog)
		defer ticker.Stop()
		tick = ticker.C
	}
	for {
		select {
		case state := <-n.states:
			n.send(ctx, state)
		case <-tick:
			n.check(ctx, limit/checksPerWatchdog, check)
		case <-ctx.Done():
			for len(n.states) > 0 { // that the process stops may have been said a moment ago
				n.send(context.WithoutCancel(ctx), <-n.states)
			}
			return
		}
	}
}

// check sends a sign of life if the proxy is well. It sends messages meanwhile.
func (n *Notifier) check(ctx context.Context, limit time.Duration, check func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- check(ctx) }()
	for {
		select {
		case err := <-result:
			if err != nil && !n.stopping.Load() {
				n.observer.Observe(ctx, &observe.SelfCheckFailed{Err: err})
			} else {
				n.send(ctx, sd.SdNotifyWatchdog)
			}
			return
		case state := <-n.states:
			n.send(ctx, state)
		}
	}
}

func (n *Notifier) send(ctx context.Context, state string) {
	if _, err := sd.SdNotify(false, state); err != nil {
		n.observer.Observe(ctx, &observe.NotifyFailed{Err: err})
	}
}
