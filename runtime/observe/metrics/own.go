package metrics

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// OwnPrefix comes before the names of plugins' own metrics, and of no other.
const OwnPrefix = "wasmproxy_own_"

// ownBuckets is how many buckets an own histogram has, beside that for all: for 0 and less, and
// for each number of binary digits up to 40, which is a tebibyte, or 18 minutes in nanoseconds.
const ownBuckets = 41

// reservedSuffixes end names of metrics that Prometheus makes of others. A plugin's name loses
// them, and a counter gets _total back: so no plugin's metric can be taken for a part of
// another one.
var reservedSuffixes = []string{"_total", "_bucket", "_count", "_sum", "_created", "_info"}

// ownFamily is all that is exported under one name, of one type.
type ownFamily struct {
	kind int32
	seen map[string]bool // labels of series
}

// own exports plugins' own metrics. The first plugin of the chain that has a name decides its
// type; series of others with another one are left out, and counted.
func (e emitter) own(plugins []status.Plugin, own map[string]*plugin.Metrics) {
	families := map[string]*ownFamily{}
	for i := range plugins {
		id, m := clean(plugins[i].ID), own[plugins[i].ID]
		if m == nil {
			continue
		}
		left := 0
		for _, s := range m.All() {
			if !e.ownSeries(families, id, &s) {
				left++
			}
		}
		e.emit("wasmproxy_plugin_own_series_dropped", float64(left), id)
		e.emit("wasmproxy_plugin_own_values_dropped_total", float64(m.Dropped()), id)
	}
}

func (e emitter) ownSeries(families map[string]*ownFamily, id string, s *plugin.Series) bool {
	base, labels, ok := parseOwn(s.Name)
	if !ok {
		return false
	}
	f := families[base]
	if f == nil {
		f = &ownFamily{s.Kind, map[string]bool{}}
		families[base] = f
	}
	key := id
	names, values := []string{"plugin"}, []string{id}
	for _, l := range labels {
		names, values, key = append(names, l.name), append(values, l.value), key+"\x00"+l.name+"\x00"+l.value
	}
	if f.kind != s.Kind || f.seen[key] {
		return false
	}
	name := OwnPrefix + base
	if s.Kind == abi.MetricAdd {
		name += "_total"
	}
	desc := prometheus.NewDesc(name, "A metric of plugins' own: see their documents.", names, nil)
	var m prometheus.Metric
	var err error
	switch s.Kind {
	case abi.MetricAdd:
		m, err = prometheus.NewConstMetric(desc, prometheus.CounterValue, float64(s.Value), values...)
	case abi.MetricSet:
		m, err = prometheus.NewConstMetric(desc, prometheus.GaugeValue, float64(s.Value), values...)
	default:
		buckets, upTo := make(map[float64]uint64, ownBuckets), uint64(0)
		for digits := range ownBuckets { // a bucket has the integers below 1<<digits
			upTo += uint64(s.Buckets[digits])
			buckets[float64(int64(1)<<digits-1)] = upTo
		}
		m, err = prometheus.NewConstHistogram(desc, uint64(s.Count), float64(s.Value), buckets, values...)
	}
	if err != nil {
		return false
	}
	f.seen[key] = true
	e.to <- m
	return true
}

type ownLabel struct{ name, value string }

var ownLabelPattern = regexp.MustCompile(`([a-z_][a-z0-9_]*)="([^"]*)"`)

// parseOwn takes the name of a plugin's own series apart, which package plugin has checked. The
// labels are sorted. It is not ok if there are two of one name.
func parseOwn(series string) (base string, labels []ownLabel, ok bool) {
	base, of, _ := strings.Cut(series, "{")
	for trimmed := true; trimmed; {
		trimmed = false
		for _, suffix := range reservedSuffixes {
			if rest, found := strings.CutSuffix(base, suffix); found && rest != "" {
				base, trimmed = rest, true
			}
		}
	}
	for _, l := range ownLabelPattern.FindAllStringSubmatch(of, -1) {
		name := l[1]
		if name == "plugin" || name == "le" || strings.HasPrefix(name, "__") { // as Prometheus does with labels that it has itself
			name = "exported_" + name
		}
		labels = append(labels, ownLabel{name, strings.ToValidUTF8(l[2], "�")})
	}
	slices.SortFunc(labels, func(a, b ownLabel) int { return cmp.Compare(a.name, b.name) })
	for i := range labels[:max(len(labels)-1, 0)] {
		if labels[i].name == labels[i+1].name {
			return "", nil, false
		}
	}
	return base, labels, true
}
