package metrics

import (
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/wasmproxy/wasmproxy/abi"
)

func goVersion() string { return runtime.Version() }

func abiVersion() string { return abi.Module + "." + strconv.Itoa(abi.Minor) }

// valueOf is the value of a counter.
func valueOf(c prometheus.Counter) float64 {
	var d dto.Metric
	if c.Write(&d) != nil { // it cannot fail
		return 0
	}
	return d.GetCounter().GetValue()
}

func histogramOf(o prometheus.Observer) *dto.Histogram {
	var d dto.Metric
	if o.(prometheus.Metric).Write(&d) != nil {
		return nil
	}
	return d.GetHistogram()
}

// quantile estimates a quantile of all that the histograms of equal buckets took, as Prometheus'
// histogram_quantile does: evenly within a bucket. Beyond the last bucket it is that one's
// bound.
func quantile(q float64, all []*dto.Histogram) time.Duration {
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
			return seconds(from + (last-from)*within)
		}
		below, from = upTo, last
	}
	return seconds(last)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
