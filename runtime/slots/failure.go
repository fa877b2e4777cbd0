package slots

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// Missing says which plugins are not as their files say, what runs instead, and why if asked. Without files it names
// only those with policy Fail that are not active. There is none if the slots have ended. That their owner does not answer
// before ctx is done is a reason, too.
func (s *Slots) Missing(ctx context.Context, why, files bool) []string {
	reasons, err := ask(ctx, s, func() (reasons []string, err error) {
		for _, p := range slices.Concat(s.order, slices.SortedFunc(maps.Values(s.off), compareSlots)) {
			name, failure := "plugin "+plugin.Printable(p.id, 1<<8), p.failure()
			switch v := p.awaited(); {
			case files && failure != nil:
				reason := name
				if why {
					reason += ": " + failure.Error
				} else {
					reason += ": its files cannot be loaded"
				}
				reasons = append(reasons, fmt.Sprintf("%s, since %s; %s", reason, failure.Since.UTC().Format(time.RFC3339), failure.Meanwhile))
			case v != nil && v.description.Policy == plugin.Fail:
				reasons = append(reasons, fmt.Sprintf("%s with policy Fail is %s until it is loaded", name, p.state()))
			}
		}
		return reasons, nil
	})
	const silent = "the owner of the plugins does not answer"
	switch {
	case err == nil, errors.As(err, new(admin.NotReady)):
		return reasons
	case why:
		return []string{silent + ": " + ctx.Err().Error()}
	}
	return []string{silent}
}

// failure says why a plugin is not as its files say, and what runs meanwhile; nil if it is, or is on its way to be.
func (p *slot) failure() *status.FileFailure {
	f := &status.FileFailure{Since: p.bad}
	switch v := p.loads(); {
	case p.description.Problem != nil:
		f.Error = p.description.Problem.Error()
	case p.next != nil && p.next.reason != nil:
		f.Error, f.Since = p.next.reason.Error(), p.next.failedSince
	case v != nil && v.reason != nil:
		f.Error, f.Since = v.reason.Error(), v.failedSince
	default:
		return nil
	}
	why := plugin.Printable(f.Error, 1<<10)
	if last := p.last; last != nil && last.reason != nil && last.reason.Error() != f.Error {
		why += "; nor can its last good version be loaded: " + plugin.Printable(last.reason.Error(), 1<<10)
	}
	f.Error = why

	switch {
	case p.owner.off[p.id] != nil:
		f.Meanwhile = "the plugin stays disabled"
	case p.owner.bypassed:
		f.Meanwhile = "plugins are bypassed"
	case p.active != nil:
		since := p.active.since
		if p.isGood(p.active.description) {
			since = p.good.Since
		}
		version := "the version"
		if v := p.active.loaded.Manifest().Version; v != "" { // a hook server has none
			version = "version " + plugin.Printable(v, 1<<8)
		}
		f.Meanwhile = fmt.Sprintf("%s of %s stays active", version, since.UTC().Format(time.RFC3339))
	case p.refuses():
		f.Meanwhile = "its hooks are refused until its last good version is loaded"
	case p.last != nil && p.last.state != failed:
		f.Meanwhile = "its last good version is being loaded"
	default:
		f.Meanwhile = "the plugin is not loaded"
	}
	return f
}
