package main

import (
	wp "github.com/wasmproxy/wasmproxy/sdk"
	"github.com/wasmproxy/wasmproxy/sdk/json"
)

// What Koordinator v1.8.0 writes on a pod.
const (
	qosLabel = "koordinator.sh/qosClass"
	burstKey = "koordinator.sh/cpuBurst"
)

const schema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"policy":{"enum":["none","cpuBurstOnly","cfsQuotaBurstOnly","auto"]},` +
	`"cpuBurstPercent":{"type":"integer","minimum":0,"maximum":10000},` +
	`"cfsQuotaBurstPercent":{"type":"integer","minimum":100,"maximum":10000},` +
	`"cfsQuotaBurstPeriodSeconds":{"type":"integer","minimum":-1,"maximum":86400},` +
	`"sharePoolThresholdPercent":{"type":"integer","minimum":0,"maximum":100}}}`

// strategy is Koordinator's CPUBurstConfig: what holds for a pod.
type strategy struct {
	burst, quota bool  // what the policy allows
	burstPercent int64 // of the limit
	quotaPercent int64
	seconds      int64 // that a quota may be used to the full; less than 0 for ever
}

// config is Koordinator's CPUBurstStrategy: that of the node.
var config struct {
	strategy
	threshold int64 // percent of the shared CPUs
}

// configure begins anew: it also forgets what earlier calls left in memory.
func configure(text string) error {
	said = nil
	forget()
	settings := json.Parse(text)
	config.strategy = overlaid(settings, strategy{burstPercent: 1_000, quotaPercent: 300, seconds: -1}) // koordlet's defaults
	config.threshold = settings.Int("sharePoolThresholdPercent", 0, 100, 50)
	if err := settings.Err(); err != nil {
		return wp.Failure("config: " + err.Error())
	}
	return nil
}

// strategyOf returns the strategy of a pod: the node's, with what its annotation says instead.
func strategyOf(p wp.Pod) strategy {
	text, _ := p.Annotation(burstKey)
	if text == "" {
		return config.strategy
	}
	settings := json.Parse(text)
	s := overlaid(settings, config.strategy)
	if err := settings.Err(); err != nil {
		once("annotation "+burstKey, "of pod "+p.Namespace()+"/"+p.Name()+" does not count: "+err.Error())
		return config.strategy
	}
	return s
}

// overlaid returns s with what an object says instead.
func overlaid(settings json.Object, s strategy) strategy {
	if policy := settings.OneOf("policy", "", "none", "cpuBurstOnly", "cfsQuotaBurstOnly", "auto"); policy != "" {
		s.burst = policy == "auto" || policy == "cpuBurstOnly"
		s.quota = policy == "auto" || policy == "cfsQuotaBurstOnly"
	}
	s.burstPercent = settings.Int("cpuBurstPercent", 0, 10_000, s.burstPercent)
	s.quotaPercent = settings.Int("cfsQuotaBurstPercent", 100, 10_000, s.quotaPercent)
	s.seconds = settings.Int("cfsQuotaBurstPeriodSeconds", -1, 86_400, s.seconds)
	return s
}

// burstOf is koordlet's calcStaticCPUBurstVal. The proxy cuts it to the quota of the moment, because the kernel refuses more.
func (s strategy) burstOf(limit int64) int64 {
	if !s.burst {
		return 0
	}
	return limit * s.burstPercent / 100
}
