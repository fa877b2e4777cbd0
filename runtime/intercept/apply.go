package intercept

import (
	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Apply implements plugin.Subject. Cgroup files and what is withdrawn are no part of a message: the
// caller carries them out.
func (e *event) Apply(changes []plugin.Owned) {
	for i := range changes {
		c := &changes[i].Change
		if c.Op == plugin.Withdraw {
			e.withdrawn = append(e.withdrawn, changes[i])
		}
		if c.IsFile() || c.Op == plugin.Withdraw {
			continue
		}
		e.noteBefore(c)
		e.object(c.Object).Set(c)
		if c.Object == abi.Container && e.sent != nil {
			crifield.Object{Container: e.sent}.Set(c)
		}
	}
	if m := &e.host.method; e.hook == m.Pre {
		e.writeTo(m.Carries(e.messages.req))
	}
}
