package daemon

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// kept is what plugins have on the host: it outlives a reload, by the plugin's id,
// until its files go.
type kept struct {
	values  *plugin.KV
	metrics *plugin.Metrics
}

// keep returns what the plugin of this id has.
func (l *loader) keep(id string) kept {
	k, ok := l.kept[id]
	if !ok {
		k = kept{plugin.NewKV(), plugin.NewMetrics()}
		l.kept[id] = k
	}
	return k
}

// metrics returns what plugins have counted and measured, by plugin.
func (l *loader) metrics() []any {
	var all []any
	for _, id := range slices.Sorted(maps.Keys(l.kept)) {
		var of []any
		for _, s := range l.kept[id].metrics.All() {
			of = append(of, slog.Int64(s.Name, s.Value))
		}
		if n := l.kept[id].metrics.Dropped(); n > 0 {
			of = append(of, slog.Int64("(dropped)", n)) // of another kind, or of too many names
		}
		if len(of) > 0 {
			all = append(all, slog.Group(id, of...))
		}
	}
	return all
}

// granted is what a module may have of what it declares.
func granted(d registry.Description) abi.CapabilitySet { return abi.DefaultGrant() | d.Grant }

// moduleOptions are a module's by its description.
func (l *loader) moduleOptions(d registry.Description) (wasm.PluginOptions, error) {
	k := l.keep(d.ID)
	o := wasm.PluginOptions{
		Config: d.Config, Timeout: d.Timeout, Interpret: d.Interpret, Granted: granted(d), State: d.State,
		KV: k.values, Metrics: k.metrics, Features: l.features,
	}
	if err := o.SetLimits(d.Limits); err != nil {
		return o, fmt.Errorf("loading plugin %s: %s: %w", d.ID, describing(d), err)
	}
	return o, nil
}

// describing is the name of the JSON file that says, or can say, what a module may do.
func describing(d registry.Description) string {
	return plugin.Name(strings.TrimSuffix(filepath.Base(d.File), filepath.Ext(d.File)) + ".json")
}

// capabilities are those that a plugin has. A hook server changes what it likes,
// as it did before there were any.
func capabilities(d registry.Description, manifest abi.Manifest) abi.CapabilitySet {
	if d.IsHookServer() {
		return abi.AllCapabilities
	}
	declared, _ := manifest.Declared()
	return declared & granted(d)
}

// lack says which line the operator must write for what a plugin declares and has
// not; "" if it has all.
func lack(d registry.Description, manifest abi.Manifest) string {
	declared, _ := manifest.Declared()
	lacks := declared &^ granted(d)
	if lacks == 0 || d.IsHookServer() {
		return ""
	}
	needs, _ := json.Marshal(lacks.Names())
	grant, _ := json.Marshal((lacks | d.Grant).Names()) // names are no trouble to JSON
	return fmt.Sprintf("plugin needs %s: add  \"grant\": %s  to %s", strings.Trim(string(needs), "[]"), grant, describing(d))
}

// features are what this node has of what nodes may lack.
func features(cgroups *cgroup.FS) []abi.Feature {
	all := []abi.Feature{abi.FeatureUpdate, abi.FeatureKV}
	if cgroups == nil {
		return all
	}
	if all = append(all, abi.FeatureCgroupFiles); cgroups.Version() == 2 {
		all = append(all, abi.FeatureCgroupV2)
	}
	return all
}
