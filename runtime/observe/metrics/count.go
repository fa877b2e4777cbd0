package metrics

import (
	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// count counts an event that does not come with most calls.
func (m *Metrics) count(e observe.Event) {
	switch e := e.(type) {
	case *observe.CallRefused:
		m.addOf(e.Plugin, "wasmproxy_calls_refused_total", 1, e.Hook.String())
	case *observe.HooksSkipped:
		m.add("wasmproxy_hooks_skipped_total", 1, e.Hook.String())
	case *observe.PostHookDropped:
		m.add("wasmproxy_post_hooks_dropped_total", 1)
	case *observe.PostHooksLate:
		m.add("wasmproxy_post_hooks_late_total", 1, e.Hook.String())
	case *observe.Panicked:
		m.add("wasmproxy_panics_total", 1)
	case *observe.StoreNotFilled:
		m.add("wasmproxy_store_fill_failures_total", e.Failures)
	case *observe.StateNotSaved:
		m.add("wasmproxy_state_write_failures_total", 1)
	case *observe.SystemdPropertyRefused:
		m.add("wasmproxy_systemd_refusals_total", 1)
	case *observe.CallExempted:
		m.addOf(e.Plugin, "wasmproxy_calls_exempted_total", 1)
	case *observe.DryRunChange:
		m.addOf(e.Plugin, "wasmproxy_plugin_dry_run_changes_total", 1)
	case *observe.DryRunRejection:
		m.addOf(e.Plugin, "wasmproxy_plugin_dry_run_rejections_total", 1)
	case *observe.TickStopped:
		m.addOf(e.Plugin, "wasmproxy_plugin_ticks_stopped_total", 1, string(e.Class))
	case *observe.ShadowCalled:
		m.addOf(e.Plugin, "wasmproxy_plugin_shadow_total", 1, string(e.Outcome))
	case *observe.Conflict:
		m.addOf(e.Plugin, "wasmproxy_plugin_conflicts_total", 1)
	case *observe.DeferredUpdateFailed:
		m.addOf(e.Plugin, "wasmproxy_plugin_deferred_update_failures_total", 1)
	case *observe.PluginLogCut:
		m.addOf(e.Plugin, "wasmproxy_plugin_log_dropped_bytes_total", e.DroppedBytes)
	case *observe.PluginLoaded:
		m.loaded(e, "loaded")
	case *observe.PluginReplaced:
		m.loaded(&e.PluginLoaded, "replaced")
	case *observe.PluginRejected:
		m.addOf(e.Plugin, "wasmproxy_plugin_loads_total", 1, "failed")
	case *observe.AuditLinesLimited:
		m.addOf(e.Plugin, "wasmproxy_audit_lines_limited_total", e.Lines)
	case *observe.ProbationFailed:
		m.addOf(e.Plugin, "wasmproxy_plugin_probations_failed_total", 1)
	case *observe.BreakerOpened:
		m.addOf(e.Plugin, "wasmproxy_plugin_breaker_openings_total", 1)
	case *observe.CgroupFileWritten:
		m.addOf(e.Plugin, "wasmproxy_cgroup_writes_total", 1)
	case *observe.CgroupFileFailed:
		m.addOf(e.Plugin, "wasmproxy_cgroup_write_failures_total", 1)
	case *observe.CgroupFileRepaired:
		m.addOf(e.Plugin, "wasmproxy_cgroup_repairs_total", 1)
	case *observe.CgroupFileFought:
		m.addOf(e.Plugin, "wasmproxy_cgroup_fights_total", 1)
	case *observe.CgroupFileUndone:
		m.add("wasmproxy_cgroup_undos_total", 1)
	case *observe.SuspendFailed, *observe.RestoreFailed:
		m.add("wasmproxy_cgroup_suspend_failures_total", 1)
	}
}

// loaded counts a load. What the plugin refuses is 0 before it refuses for the first time.
func (m *Metrics) loaded(e *observe.PluginLoaded, result string) {
	m.addOf(e.Plugin, "wasmproxy_plugin_loads_total", 1, result)
	for _, name := range e.Hooks {
		if h, ok := abi.HookByName(name); ok && h.Info().Phase == abi.Before {
			m.addOf(e.Plugin, "wasmproxy_hook_calls_total", 0, name)
			m.addOf(e.Plugin, "wasmproxy_calls_refused_total", 0, name)
		}
	}
}

func (m *Metrics) add(name string, n int, labels ...string) {
	m.families.counters[name].WithLabelValues(labels...).Add(float64(max(n, 0)))
}

// addOf counts something of a plugin, whose series end with it.
func (m *Metrics) addOf(id, name string, n int, labels ...string) {
	if id != "" {
		id = m.plugin(id).id
	}
	m.add(name, n, append([]string{id}, labels...)...)
}
