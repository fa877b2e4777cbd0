package service

import (
	"context"
	"fmt"
	"strings"
	"sync"
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

// Notifier is a sink of events that tells systemd the state of the proxy.
type Notifier struct {
	observer observe.Observer
	wake     chan struct{} // holds a token while there is something to send

	mu       sync.Mutex
	states   []string // to be sent, guarded by mu
	stopping bool     // guarded by mu

	bypassed atomic.Bool // plugins are
}

// NewNotifier returns a Notifier that is yet to Run. The observer takes what goes wrong.
func NewNotifier(observer observe.Observer) *Notifier {
	return &Notifier{observer: observer, wake: make(chan struct{}, 1)}
}

// Wants implements observe.Observer.
func (n *Notifier) Wants(observe.Kind) bool { return false }

// Observe implements observe.Observer. It does not wait for systemd.
func (n *Notifier) Observe(_ context.Context, e observe.Event) {
	switch e := e.(type) {
	case *observe.Serving:
		n.post(false, sd.SdNotifyReady, "STATUS="+n.began())
	case *observe.BypassOn:
		n.bypassed.Store(true)
		n.post(false, "STATUS="+n.began())
	case *observe.BypassOff:
		n.bypassed.Store(false)
		n.post(false, "STATUS="+n.began())
	case *observe.GenerationActive:
		n.post(false, "STATUS="+plugins(e))
	case *observe.NoPlugins:
		n.post(false, "STATUS="+noPlugins)
	case *observe.Stopping:
		n.post(true, sd.SdNotifyStopping, "STATUS=Stopping. Calls in flight have "+e.DrainTimeout.String()+" to finish.",
			fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (e.DrainTimeout+closeTime).Microseconds()))
	}
}

// noPlugins is also what the status says until the first plugin is loaded, which may never come.
const noPlugins = "Serving calls. No plugins are active."

// began is what the status says before a plugin is loaded.
func (n *Notifier) began() string {
	if n.bypassed.Load() {
		return "Serving calls. Plugins are bypassed: every call passes as it came."
	}
	return noPlugins
}

// plugins is what the status says about a set of plugins.
func plugins(g *observe.GenerationActive) string {
	status := noPlugins
	if len(g.Plugins) > 0 {
		status = fmt.Sprintf("Serving calls. %d plugins are active: %s.", len(g.Plugins), strings.Join(g.Plugins, ", "))
	}
	if len(g.Refusing) > 0 {
		status += " Calls are refused for plugins that are not loaded: " + strings.Join(g.Refusing, ", ") + "."
	}
	return status
}

func (n *Notifier) post(stopping bool, states ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopping = n.stopping || stopping
	n.states = append(n.states, strings.Join(states, "\n"))
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// take returns what is to be sent.
func (n *Notifier) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := n.states
	n.states = nil
	return all
}

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
		case <-n.wake:
			n.send(ctx, n.take()...)
		case <-tick:
			n.check(ctx, limit/checksPerWatchdog, check)
		case <-ctx.Done():
			n.send(context.WithoutCancel(ctx), n.take()...) // that the process stops may have been said a moment ago
			return
		}
	}
}

// check sends a sign of life if the proxy is well.
func (n *Notifier) check(ctx context.Context, limit time.Duration, check func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := n.await(ctx, check); err != nil && !n.isStopping() {
		n.observer.Observe(ctx, &observe.SelfCheckFailed{Err: err})
		return
	}
	n.send(ctx, sd.SdNotifyWatchdog)
}

// await returns the result of a check. It sends messages meanwhile.
func (n *Notifier) await(ctx context.Context, check func(context.Context) error) error {
	result := make(chan error, 1)
	go func() { result <- check(ctx) }()
	for {
		select {
		case err := <-result:
			return err
		case <-n.wake:
			n.send(ctx, n.take()...)
		}
	}
}

func (n *Notifier) isStopping() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.stopping
}

func (n *Notifier) send(ctx context.Context, states ...string) {
	for _, state := range states {
		if _, err := sd.SdNotify(false, state); err != nil {
			n.observer.Observe(ctx, &observe.NotifyFailed{Err: err})
		}
	}
}
