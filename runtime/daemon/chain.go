package daemon

import (
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// generation makes the routes of these members, and keeps their plugins.
func (d *daemon) generation(members []member) *generation {
	plugins := make([]*loaded, len(members))
	for i, m := range members {
		plugins[i] = m.loaded
	}
	g := newGeneration(plugins)
	g.members, g.ended = members, d.syncTrigger.notify
	g.options = d.options(members)
	g.options.Keep = func() func() { g.acquire(); return g.release } // asked by a call, which keeps g
	g.options.Chain = g.options.NewChain(chained(g.options, members)...)
	g.route = intercept.Router(g.options)
	return g
}

// options are what these members' calls are intercepted with, but for the chain.
func (d *daemon) options(members []member) intercept.Options {
	return intercept.Options{
		Observer: d.observer, Store: d.store, Backend: d.backend.client, Cgroups: d.cgroups, Node: &d.node, Queue: d.queue, CallTime: callTime(members),
		NewChain: func(chain ...plugin.Member) *plugin.Chain {
			return plugin.NewChain(d.observer, d.files(), chain...)
		},
		AfterFailure: d.afterFailure(members),
		Synchronized: synchronized(members),
	}
}

// afterFailure is the chain of those that are asked after calls that failed, too; nil
// if there are none.
func (d *daemon) afterFailure(members []member) *plugin.Chain {
	var always []plugin.Member
	for _, m := range members {
		if m.always {
			always = append(always, m.Member)
		}
	}
	if always == nil {
		return nil
	}
	return plugin.NewChain(d.observer, nil, always...)
}

// callTime is the time of all plugins of one call together: at least the longest timeout of
// one of them.
func callTime(members []member) time.Duration {
	longest := intercept.DefaultCallTime
	for _, m := range members {
		longest = max(longest, m.time)
	}
	return longest
}

// files is what plugins may write to; a nil *cgroup.FS is no Files.
func (d *daemon) files() plugin.Files {
	if d.cgroups == nil {
		return nil
	}
	return d.cgroups
}
