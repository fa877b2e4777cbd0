package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/bypass"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

func findSettings(_ context.Context, n *node) ([]found, error) {
	return each("settings", lines(n.SettingsErr)), nil
}

// running has a check that looks at what the running proxy tells.
func running(find func(*status.Status) []found) func(context.Context, *node) ([]found, error) {
	return func(_ context.Context, n *node) ([]found, error) {
		if n.proxyErr != nil {
			return nil, n.proxyErr
		}
		return find(n.status), nil
	}
}

func findSettingsInForce(s *status.Status) []found {
	since := s.Settings.Since.UTC().Format(time.RFC3339)
	switch {
	case s.Settings.Changed:
		return []found{{s.Settings.File, "it has other settings than the active ones, which are of " + since}}
	case s.Settings.Error != "":
		return []found{{s.Settings.File, "it cannot be used: " + s.Settings.Error + "; the active settings are of " + since}}
	}
	return nil
}

func findProxyServes(ctx context.Context, n *node) ([]found, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return unanswered(n.config.Listen, n.answers(ctx, n.socket(n.config.Listen)))
}

// unanswered finds that nobody answers on a socket. Whoever may not connect to it does not know.
func unanswered(endpoint string, err error) ([]found, error) {
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return nil, err
	}
	return []found{{endpoint, err.Error()}}, nil
}

func findProxyReady(s *status.Status) []found { return each("the running proxy", s.NotReady) }

func findBypass(_ context.Context, n *node) ([]found, error) {
	if n.config.BypassFile == "" {
		return nil, nil
	}
	s, err := bypass.Read(n.under(n.config.BypassFile))
	if err != nil || !s.On {
		return nil, err
	}
	what := fmt.Sprintf("plugins are bypassed since %s: %s", s.Since.UTC().Format("2006-01-02 15:04:05Z"), s.Reason)
	return []found{{n.config.BypassFile, strings.TrimSuffix(what, ": ")}}, nil
}

func findBreakers(s *status.Status) (all []found) {
	for _, p := range s.Plugins.Plugins {
		if p.Breaker == "" || p.Breaker == "closed" {
			continue
		}
		f := found{"plugin " + p.ID, fmt.Sprintf("its circuit breaker is %s", p.Breaker)}
		if p.LastError != nil {
			f.what += fmt.Sprintf("; it failed last in %s: %s", p.LastError.Hook, p.LastError.Error)
		}
		all = append(all, f)
	}
	return all
}

// counted finds the plugins of the running proxy that have a count.
func counted(format string, of func(*status.Counts) uint64) func(context.Context, *node) ([]found, error) {
	return running(func(s *status.Status) (all []found) {
		for i := range s.Plugins.Plugins {
			p := &s.Plugins.Plugins[i]
			if count := of(&p.Counts); count > 0 {
				all = append(all, found{"plugin " + p.ID, fmt.Sprintf(format, count)})
			}
		}
		return all
	})
}

func findPluginState(s *status.Status) (all []found) {
	for _, p := range s.Plugins.Plugins {
		if p.State == status.Inactive || p.State == status.Refusing { // files that are bad are among the reasons of proxy-ready
			all = append(all, found{"plugin " + p.ID + " " + p.File, fmt.Sprintf("it is %s", p.State)})
		}
	}
	return all
}

// findPluginCalls finds plugins of which more than a twentieth of the calls fail, or that refuse more than half of those that
// they could refuse.
func findPluginCalls(s *status.Status) (all []found) {
	for _, p := range s.Plugins.Plugins {
		if p.Failures*20 > p.Calls {
			f := found{"plugin " + p.ID, fmt.Sprintf("%d of its %d calls failed", p.Failures, p.Calls)}
			if p.LastError != nil {
				f.what += fmt.Sprintf("; the last one in %s: %s", p.LastError.Hook, p.LastError.Error)
			}
			all = append(all, f)
		}
		if p.Rejections*2 > p.Refusable && !p.DryRun {
			all = append(all, found{"plugin " + p.ID, fmt.Sprintf("it refused %d of the %d calls that it could refuse", p.Rejections, p.Refusable)})
		}
	}
	return all
}

// enoughCalls is after how many calls of a kind that most plugins hook into a plugin should have
// been called.
const enoughCalls = 20

func findUncalled(_ context.Context, n *node) (all []found, err error) {
	if n.proxyErr != nil {
		return nil, n.proxyErr
	}
	created := n.status.Created
	if created < enoughCalls {
		return nil, fmt.Errorf("only %d containers were created since the proxy was started", created)
	}
	for _, p := range n.status.Plugins.Plugins {
		if p.State == status.Active && p.Calls == 0 {
			all = append(all, found{"plugin " + p.ID, fmt.Sprintf("no hook of it was called, and %d containers were created", created)})
		}
	}
	return all, nil
}
