package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// valueOf is the value of a counter.
func valueOf(c prometheus.Counter) float64 {
	var d dto.Metric
	if c.Write(&d) != nil { // it cannot fail
		return 0
	}
	return d.GetCounter().GetValue()
}

// quantile estimates a quantile of all that the histograms of equal buckets took, as Prometheus'
// histogram_quantile does: evenly within a bucket. Beyond the last bucket it is that one's
// bound. It is in seconds.
func quantile(q float64, all []*dto.Histogram) float64 {
	var count uint64
	for _, h := range all {
		count += h.GetSampleCount()
	}
	if count == 0 {
		return 0
	}
	rank, below, from, last := q*float64(count), 0.0, 0.0, 0.0
	for i := range all[0].GetBucket() {
		upTo := 0.0
		for _, h := range all {
			upTo += float64(h.GetBucket()[i].GetCumulativeCount())
		}
		last = all[0].GetBucket()[i].GetUpperBound()
		if upTo >= rank {
			within := (rank - below) / (upTo - below)
			return from + (last-from)*within
		}
		below, from = upTo, last
	}
	return last
}
