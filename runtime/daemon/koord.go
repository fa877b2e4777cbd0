package daemon

import (
	"context"
	"log/slog"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/remote"
)

// koord is what the settings say of hook servers.
type koord struct {
	skip   abi.Match // rules out the pods about which none is asked
	compat bool      // they are treated as koord-runtime-proxy did
}

func koordOf(c *config.Config) koord {
	k := koord{compat: c.KoordCompat}
	if key, value, ok := strings.Cut(c.SkipLabel, "="); ok {
		k.skip.Labels = map[string]string{key: "!" + value}
	}
	return k
}

// options are those of a hook server's plugin. A server that is started anew has
// nothing to do with the faults of the one before.
func (k koord) options(d registry.Description, breaker *plugin.Breaker, log *slog.Logger) remote.Options {
	o := remote.Options{ID: d.ID, Endpoint: d.Endpoint, Hooks: d.Hooks, ClearUnset: k.compat, Log: log}
	if breaker != nil {
		o.Returned = func() { breaker.Reset(context.Background()) }
	}
	return o
}

// match is what a member is asked about: what its file says, and no pod that
// keeps away from hook servers. So the pod that a hook server itself runs in can
// start while the server is down.
func (k koord) match(d registry.Description, hooks abi.HookSet) plugin.Matches {
	m := plugin.Matches{}.And(hooks, d.Match)
	if d.IsHookServer() {
		m = m.And(hooks, k.skip)
	}
	return m
}

// afterFailure is the chain of the hook servers, which koord-runtime-proxy told
// of calls that failed, too; nil without compat.
func (k koord) afterFailure(log *slog.Logger, observe func(plugin.Outcome), members []member) *plugin.Chain {
	if !k.compat {
		return nil
	}
	var servers []plugin.Member
	for _, m := range members {
		if m.hookServer {
			servers = append(servers, m.Member)
		}
	}
	return plugin.NewChain(log, nil, observe, servers...)
}
