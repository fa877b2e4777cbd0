package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/bypass"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

func findSettings(_ context.Context, n *node) (all []found, err error) {
	for _, line := range lines(n.SettingsErr) {
		all = append(all, found{"settings", line})
	}
	return all, nil
}

func findSettingsInForce(_ context.Context, n *node) ([]found, error) {
	if n.proxyErr != nil {
		return nil, n.proxyErr
	}
	switch s := n.status.Settings; {
	case s.Changed:
		return []found{{s.File, "it has other settings than the active ones, which are of " + s.Since.UTC().Format(time.RFC3339)}}, nil
	case s.Error != "":
		return []found{{s.File, "it cannot be used: " + s.Error + "; the active settings are of " + s.Since.UTC().Format(time.RFC3339)}}, nil
	}
	return nil, nil
}

func findProxyServes(ctx context.Context, n *node) ([]found, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := n.answers(ctx, n.socket(n.config.Listen)); err != nil {
		return []found{{n.config.Listen, err.Error()}}, nil
	}
	return nil, nil
}

func findProxyReady(_ context.Context, n *node) (all []found, err error) {
	if n.proxyErr != nil {
		return nil, n.proxyErr
	}
	for _, reason := range n.status.NotReady {
		all = append(all, found{"the running proxy", reason})
	}
	return all, nil
}

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

// series is one value of a metric.
type series struct {
	labels map[string]string
	value  float64
}

// metric returns the series of one of the proxy's metrics. The error says why they are not known.
func (n *node) metric(name string) (all []series, err error) {
	if n.proxyErr != nil {
		return nil, n.proxyErr
	}
	for _, m := range n.metrics[name].GetMetric() {
		s := series{labels: map[string]string{}, value: m.GetCounter().GetValue() + m.GetGauge().GetValue() + m.GetUntyped().GetValue()}
		for _, l := range m.GetLabel() {
			s.labels[l.GetName()] = l.GetValue()
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b series) int { return strings.Compare(a.labels["plugin"], b.labels["plugin"]) })
	return all, nil
}

// counted finds the series of a metric that are not 0.
func counted(name, format string) func(context.Context, *node) ([]found, error) {
	return func(_ context.Context, n *node) (all []found, err error) {
		values, err := n.metric(name)
		for _, s := range values {
			if s.value > 0 && s.labels["plugin"] != "" {
				all = append(all, found{"plugin " + s.labels["plugin"], fmt.Sprintf(format, s.value)})
			}
		}
		return all, err
	}
}

func findBreakers(_ context.Context, n *node) (all []found, err error) {
	if n.proxyErr != nil {
		return nil, n.proxyErr
	}
	for _, p := range n.status.Plugins.Plugins {
		if p.Breaker == "" || p.Breaker == "closed" {
			continue
		}
		f := found{"plugin " + p.ID, fmt.Sprintf("its circuit breaker is %s", p.Breaker)}
		if p.LastError != nil {
			f.what += fmt.Sprintf("; it failed last in %s: %s", p.LastError.Hook, p.LastError.Error)
		}
		all = append(all, f)
	}
	return all, nil
}

func findConflicts(ctx context.Context, n *node) ([]found, error) {
	return counted("wasmproxy_plugin_conflicts_total", "%v times since the proxy was started it wanted another value than an earlier plugin")(ctx, n)
}

func findFights(ctx context.Context, n *node) ([]found, error) {
	return counted("wasmproxy_cgroup_fights_total", "%v of its cgroup files are left alone, since something else overwrites them")(ctx, n)
}

func findWriteFailures(ctx context.Context, n *node) ([]found, error) {
	return counted("wasmproxy_cgroup_write_failures_total", "%v of its writes to cgroup files failed since the proxy was started")(ctx, n)
}

func findPluginState(_ context.Context, n *node) (all []found, err error) {
	if n.proxyErr != nil {
		return nil, n.proxyErr
	}
	for _, p := range n.status.Plugins.Plugins {
		if p.State == status.Inactive || p.State == status.Refusing { // files that are bad are among the reasons of proxy-ready
			all = append(all, found{"plugin " + p.ID + " " + p.File, fmt.Sprintf("it is %s", p.State)})
		}
	}
	return all, nil
}

// findPluginCalls finds plugins of which more than a twentieth of the calls fail, or more than half are refused.
func findPluginCalls(_ context.Context, n *node) (all []found, err error) {
	if n.proxyErr != nil {
		return nil, n.proxyErr
	}
	for _, p := range n.status.Plugins.Plugins {
		if p.Failures*20 > p.Calls {
			f := found{"plugin " + p.ID, fmt.Sprintf("%d of its %d calls failed", p.Failures, p.Calls)}
			if p.LastError != nil {
				f.what += fmt.Sprintf("; the last one in %s: %s", p.LastError.Hook, p.LastError.Error)
			}
			all = append(all, f)
		}
		if p.Rejections*2 > p.Calls && !p.DryRun {
			all = append(all, found{"plugin " + p.ID, fmt.Sprintf("it refused %d of its %d calls", p.Rejections, p.Calls)})
		}
	}
	return all, nil
}

// enoughCalls is after how many calls of a kind that most plugins hook into a plugin should have
// been called.
const enoughCalls = 20

func findUncalled(_ context.Context, n *node) (all []found, err error) {
	made, err := n.metric("wasmproxy_calls_total")
	if err != nil {
		return nil, err
	}
	containers := 0.0
	for _, s := range made {
		if s.labels["method"] == "CreateContainer" && s.labels["code"] == "OK" {
			containers += s.value
		}
	}
	if containers < enoughCalls {
		return nil, unknown(fmt.Sprintf("only %v containers were created since the proxy was started", containers))
	}
	for _, p := range n.status.Plugins.Plugins {
		if p.State == status.Active && p.Calls == 0 {
			all = append(all, found{"plugin " + p.ID, fmt.Sprintf("no hook of it was called, and %v containers were created", containers)})
		}
	}
	return all, nil
}
