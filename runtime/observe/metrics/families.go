package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// families are the metrics of the table, by name. A test holds that all names are there.
type families struct {
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
	gauges     map[string]*prometheus.GaugeVec
	levels     map[string]level
	all        []prometheus.Collector // of those that are counted
	ofPlugins  []vector               // that have the label plugin
}

// level is a metric that is read when somebody asks.
type level struct {
	desc *prometheus.Desc
	of   prometheus.ValueType
}

// vector is a metric that is counted.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(prometheus.Labels) int
}

func newFamilies() families {
	f := families{
		counters:   map[string]*prometheus.CounterVec{},
		histograms: map[string]*prometheus.HistogramVec{},
		gauges:     map[string]*prometheus.GaugeVec{},
		levels:     map[string]level{},
	}
	for _, row := range Families {
		var vec vector
		switch {
		case row.level:
			of := prometheus.GaugeValue
			if row.Type == Counter {
				of = prometheus.CounterValue
			}
			f.levels[row.Name] = level{prometheus.NewDesc(row.Name, row.Help, row.Labels, nil), of}
			continue
		case row.Type == Counter:
			v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: row.Name, Help: row.Help}, row.Labels)
			f.counters[row.Name], vec = v, v
		case row.Type == Gauge:
			v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: row.Name, Help: row.Help}, row.Labels)
			f.gauges[row.Name], vec = v, v
		default:
			opts := prometheus.HistogramOpts{Name: row.Name, Help: row.Help, Buckets: buckets[row.Name]}
			v := prometheus.NewHistogramVec(opts, row.Labels)
			f.histograms[row.Name], vec = v, v
		}
		f.all = append(f.all, vec)
		if slices.Contains(row.Labels, "plugin") {
			f.ofPlugins = append(f.ofPlugins, vec)
		}
	}
	f.begin()
	return f
}

// begin makes the counters that have no other labels than a plugin's id, or none at all. They are 0
// before they count for the first time: of a series that begins with 1, Prometheus sees no increase.
// Those of dry-run, in which few plugins are, begin when they count.
func (f families) begin(plugin ...string) {
	for _, row := range Families {
		if strings.Contains(row.Name, "_dry_run_") {
			continue
		}
		c := f.counters[row.Name]
		if c == nil || len(row.Labels) != len(plugin) {
			continue
		}
		if plugin == nil || row.Labels[0] == "plugin" {
			c.WithLabelValues(plugin...)
		}
	}
}
