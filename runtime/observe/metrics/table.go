package metrics

// Type is a type of metrics, as Prometheus names it.
type Type string

// The types.
const (
	Counter   Type = "counter"
	Gauge     Type = "gauge"
	Histogram Type = "histogram"
)

// Family is a metric of the proxy, with all of its labels.
type Family struct {
	Name   string
	Type   Type
	Labels []string
	Help   string
	level  bool // it is read when somebody asks, not counted
}

// Families is the table of the proxy's own metrics. docs/metrics.md has the same. Those of
// Go's runtime and of the process (go_, process_), and plugins' own (see OwnPrefix), are beside
// it.
var Families = []Family{
	{"wasmproxy_build_info", Gauge, []string{"version", "goversion", "abi"}, "1. The labels have the versions of the program, of Go and of the plugin ABI.", false},

	{"wasmproxy_ready", Gauge, nil, "1 while calls get what they are to get, else 0: see /readyz. Here a connection to the container runtime counts as its answer, and bad files of plugins and settings have metrics of their own.", true},

	{"wasmproxy_calls_total", Counter, []string{"method", "route", "code"}, "CRI calls that were answered. route is passed, followed (the store reads the call) or hooked.", false},
	{"wasmproxy_call_seconds_total", Counter, []string{"method"}, "Time of unary calls, from the request until the answer was handed to gRPC.", false},
	{"wasmproxy_backend_seconds_total", Counter, []string{"method"}, "Part of it that the container runtime had.", false},
	{"wasmproxy_call_overhead_seconds", Histogram, nil, "The other part of each unary call, which the proxy and its plugins had.", false},
	{"wasmproxy_calls_refused_total", Counter, []string{"plugin", "hook"}, "Calls that were answered with an error because of a plugin.", false},
	{"wasmproxy_calls_exempted_total", Counter, []string{"plugin"}, "Calls that a plugin refused, or in which it failed with policy Fail, and that went on, since the pod's namespace is exempt.", false},
	{"wasmproxy_hooks_skipped_total", Counter, []string{"hook"}, "Calls that went on without their hooks, since a request could not be decoded or its object was not known.", false},
	{"wasmproxy_post_hooks_dropped_total", Counter, nil, "Post hooks that were not called since too many waited.", false},
	{"wasmproxy_post_hooks_late_total", Counter, []string{"hook"}, "Calls that did not wait any longer for earlier post hooks of their object.", false},
	{"wasmproxy_post_hook_queue_length", Gauge, nil, "Post hooks and other work after calls that have not ended.", true},
	{"wasmproxy_panics_total", Counter, nil, "Panics of the proxy's code, each of which ended only the work under way.", false},
	{"wasmproxy_kubelet_connections", Gauge, nil, "Connections of kubelet and other clients to the proxy.", true},

	{"wasmproxy_plugin_info", Gauge, []string{"plugin", "kind", "version", "digest", "settings_digest"}, "1 for each active plugin. The labels have its kind, the version of its manifest, and the SHA-256 of its module and of its JSON; empty for what it does not have.", true},
	{"wasmproxy_plugin_calls_total", Counter, []string{"plugin", "outcome"}, "Calls of a plugin. outcome is ok, rejected, failed or not_called (the circuit breaker is open).", false},
	{"wasmproxy_hook_calls_total", Counter, []string{"plugin", "hook"}, "The same by hook.", false},
	{"wasmproxy_hook_duration_seconds", Histogram, []string{"plugin", "phase"}, "Time of a plugin in a hook, with waiting for an instance. phase is pre, post or other, such as Tick.", false},
	{"wasmproxy_plugin_failures_total", Counter, []string{"plugin", "hook", "class"}, "Calls of a plugin that failed, by the class of the failure.", false},
	{"wasmproxy_plugin_fuel_total", Counter, []string{"plugin"}, "Units of fuel that a plugin used.", false},
	{"wasmproxy_plugin_host_calls_total", Counter, []string{"plugin"}, "Calls of host functions by a plugin.", false},
	{"wasmproxy_plugin_changes_total", Counter, []string{"plugin"}, "Fields that a plugin changed.", false},
	{"wasmproxy_plugin_dry_run_changes_total", Counter, []string{"plugin"}, "Fields that a plugin in dry-run would have changed.", false},
	{"wasmproxy_plugin_dry_run_rejections_total", Counter, []string{"plugin"}, "Calls that a plugin in dry-run would have refused.", false},
	{"wasmproxy_plugin_shadow_total", Counter, []string{"plugin", "outcome"}, "Calls of a plugin in which its shadow was called, too. outcome is same, different, failed or refused, by what the shadow would have done.", false},
	{"wasmproxy_plugin_conflicts_total", Counter, []string{"plugin"}, "Fields that a plugin wanted to change and that an earlier plugin had set to another value.", false},
	{"wasmproxy_plugin_deferred_update_failures_total", Counter, []string{"plugin"}, "Changes of other pods and containers that could not be carried out.", false},
	{"wasmproxy_plugin_log_dropped_bytes_total", Counter, []string{"plugin"}, "Bytes of a plugin's log that were dropped.", false},
	{"wasmproxy_plugin_loads_total", Counter, []string{"plugin", "result"}, "Loads of a plugin's files. result is loaded, replaced or failed.", false},
	{"wasmproxy_plugin_load_failed", Gauge, []string{"plugin"}, "1 while the present files of a plugin cannot be loaded, else 0. An earlier version may be active.", true},
	{"wasmproxy_plugin_on_probation", Gauge, []string{"plugin"}, "1 while the active version of a plugin is on probation; at other times there is no series.", true},
	{"wasmproxy_plugin_probations_failed_total", Counter, []string{"plugin"}, "Versions of a plugin that failed their probation, so that the node went back to the one before.", false},
	{"wasmproxy_plugin_ticks_stopped_total", Counter, []string{"plugin", "class"}, "Ticks of a plugin that a limit stopped after it was done with some pods. The next tick goes on with the others.", false},
	{"wasmproxy_plugin_breaker_openings_total", Counter, []string{"plugin"}, "Times that a plugin's circuit breaker opened.", false},
	{"wasmproxy_plugin_breaker_open", Gauge, []string{"plugin"}, "1 while a plugin is not called since it failed too often, else 0.", true},
	{"wasmproxy_plugin_state", Gauge, []string{"plugin", "state"}, "1 for the state that calls meet: active, refusing (not loaded, and its hooks are refused), inactive (not loaded, and calls pass), bypassed or disabled. A plugin that is disabled has a series only while its files are bad.", true},
	{"wasmproxy_plugin_instances", Gauge, []string{"plugin"}, "Instances of a plugin's module.", true},
	{"wasmproxy_plugin_memory_bytes", Gauge, []string{"plugin"}, "Memory of a plugin's instances, and of the images that they are reset to.", true},
	{"wasmproxy_plugins_memory_bytes", Gauge, nil, "Memory of all plugins that counts for the setting guest-memory.", true},
	{"wasmproxy_plugins_memory_limit_bytes", Gauge, nil, "The setting guest-memory.", true},
	{"wasmproxy_plugin_own_series_dropped", Gauge, []string{"plugin"}, "Metrics of a plugin's own that are not exported: the name has another type, or the labels are not valid.", true},
	{"wasmproxy_plugin_own_values_dropped_total", Counter, []string{"plugin"}, "Values of a plugin's own metrics that were dropped: of too many names, or of another kind.", true},

	{"wasmproxy_backend_connected", Gauge, nil, "1 while there is a connection to the container runtime, else 0.", true},
	{"wasmproxy_backend_disconnects_total", Counter, nil, "Times that the connection to the container runtime was lost.", true},
	{"wasmproxy_store_pods", Gauge, nil, "Pods in the store. It is empty while there is no plugin.", true},
	{"wasmproxy_store_containers", Gauge, nil, "Containers in the store.", true},
	{"wasmproxy_store_filled", Gauge, nil, "1 if the store holds all of the container runtime, or nothing needs it; else 0.", true},
	{"wasmproxy_store_fill_failures_total", Counter, nil, "Times that the container runtime could not be asked for its pods.", false},

	{"wasmproxy_cgroup_writes_total", Counter, []string{"plugin"}, "Cgroup files that were written for a plugin.", false},
	{"wasmproxy_cgroup_write_failures_total", Counter, []string{"plugin"}, "Cgroup files that could not be written for a plugin. Without the label plugin: to which kubelet's value was to come back.", false},
	{"wasmproxy_cgroup_repairs_total", Counter, []string{"plugin"}, "Values of a plugin that were written again, since something else had overwritten them.", false},
	{"wasmproxy_cgroup_fights_total", Counter, []string{"plugin"}, "Cgroup files that are left alone, since something else overwrites them again and again.", false},
	{"wasmproxy_cgroup_undos_total", Counter, nil, "Cgroup files to which kubelet's value was written back.", false},
	{"wasmproxy_cgroup_suspend_failures_total", Counter, nil, "Updates before or after which values in cgroup files could not be cleared or written back.", false},
	{"wasmproxy_ledger_objects", Gauge, nil, "Pods and containers of which plugins want values.", true},
	{"wasmproxy_ledger_values", Gauge, nil, "Values that plugins want of them.", true},
	{"wasmproxy_ledger_values_not_held", Gauge, []string{"plugin"}, "Values of a plugin that are left alone, since something else overwrites them, or that could not be written. With an empty plugin: kubelet's values that could not be written back.", true},
	{"wasmproxy_state_saved", Gauge, nil, "1 while state-dir and data-dir have what they are to have, or are empty; 0 while a file of theirs cannot be written.", true},
	{"wasmproxy_state_write_failures_total", Counter, nil, "Conditions under which a state file could not be written.", false},
	{"wasmproxy_systemd_refusals_total", Counter, nil, "Properties of units that systemd did not take.", false},

	{"wasmproxy_audit_lines_lost_total", Counter, nil, "Lines of the audit log that could not be written, or that too many waited for.", true},
	{"wasmproxy_audit_lines_limited_total", Counter, []string{"plugin"}, "Lines of the audit log about a plugin that were left out, since it made more than a plugin may.", false},
	{"wasmproxy_trace_spans_lost_total", Counter, nil, "Spans of traces that the collector did not take, or that too many waited for.", true},

	{"wasmproxy_settings_load_failed", Gauge, nil, "1 while the settings file, as it is now, cannot be used, else 0. Earlier settings are active.", true},
	{"wasmproxy_settings_changed", Gauge, nil, "1 while the settings file has other settings than the active ones, and a restart would activate them; else 0.", true},

	{"wasmproxy_bypass", Gauge, nil, "1 while every call passes as it came because of the bypass, else 0.", true},
}

// buckets are the upper bounds of histograms, in seconds. What the proxy adds to a call takes from a
// fraction of a millisecond to a second, a hook from some microseconds to its limit, a minute at most.
var buckets = map[string][]float64{
	"wasmproxy_call_overhead_seconds": {1e-4, 5e-4, 1e-3, 2.5e-3, 1e-2, 5e-2, 0.25, 1},
	"wasmproxy_hook_duration_seconds": {1e-4, 1e-3, 1e-2, 5e-2, 0.25, 1},
}
