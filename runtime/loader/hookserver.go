package loader

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/remote"
)

// remoteTimeout is the time that one call of a hook server may take if its
// description does not say.
const remoteTimeout = 2 * time.Second

// hookServers are the plugins that are processes of their own.
type hookServers struct {
	observer observe.Observer
	skip     abi.Match // rules out the pods about which none is asked
	compat   bool      // they are treated as koord-runtime-proxy did
}

// open makes the plugin. A server that is started anew has nothing to do with the
// faults of the one before.
func (k hookServers) open(d registry.Description, breaker *plugin.Breaker) (plugin.Plugin, error) {
	o := remote.Options{ID: d.ID, Endpoint: d.Endpoint, Hooks: d.Hooks, ClearUnset: k.compat, Observer: k.observer}
	if breaker != nil {
		o.Returned = func() { breaker.Reset(context.Background()) }
	}
	p, err := remote.New(o)
	if err != nil {
		return nil, TemporaryError{err}
	}
	return p, nil
}

// configure is Loader's for a hook server. No hook server is called for a pod that keeps away from
// them, so that the pod in which a server itself runs can start while the server is down.
// koord-runtime-proxy told them of calls that failed, too.
func (k hookServers) configure(m *Member, d registry.Description) {
	m.Match = m.Match.And(m.Hooks, k.skip)
	m.Always = k.compat
	m.Capabilities = abi.AllCapabilities // as before there were any
	m.KeepsPodLimits = true
	if m.Timeout = d.Timeout; m.Timeout == 0 {
		m.Timeout = remoteTimeout
	}
	m.Time = m.Timeout
}
