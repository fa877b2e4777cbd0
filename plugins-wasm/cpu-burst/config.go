package main

import (
	"github.com/wasmproxy/wasmproxy/plugins-wasm/internal/json"
	wp "github.com/wasmproxy/wasmproxy/sdk"
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
func configure(text string) (err error) {
	said = nil
	forget()
	config.strategy, err = parse(text, strategy{burstPercent: 1_000, quotaPercent: 300, seconds: -1}) // koordlet's defaults
	config.threshold = 50
	if err == nil {
		err = readNumber(text, "sharePoolThresholdPercent", &config.threshold, 0, 100)
	}
	if err != nil {
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
	s, err := parse(text, config.strategy)
	if err != nil {
		once("annotation "+burstKey, "of pod "+p.Namespace()+"/"+p.Name()+" does not count: "+err.Error())
		return config.strategy
	}
	return s
}

// parse returns s with what an object in JSON says instead.
func parse(text string, s strategy) (strategy, error) {
	policy, ok, err := json.Find(text, "policy")
	if err != nil {
		return s, err
	}
	if ok {
		s.burst = policy == "auto" || policy == "cpuBurstOnly"
		s.quota = policy == "auto" || policy == "cfsQuotaBurstOnly"
		if policy != "none" && !s.burst && !s.quota {
			return s, wp.Failure("policy: \"" + policy + "\" must be none, cpuBurstOnly, cfsQuotaBurstOnly or auto")
		}
	}
	err = readNumber(text, "cpuBurstPercent", &s.burstPercent, 0, 10_000)
	if err == nil {
		err = readNumber(text, "cfsQuotaBurstPercent", &s.quotaPercent, 100, 10_000)
	}
	if err == nil {
		err = readNumber(text, "cfsQuotaBurstPeriodSeconds", &s.seconds, -1, 86_400)
	}
	return s, err
}

// readNumber reads the whole number under a key to v, if there is one.
func readNumber(text, key string, v *int64, least, most int64) error {
	digits, ok, err := json.Find(text, key)
	if !ok {
		return err
	}
	n, ok := wp.ParseInt(digits)
	if !ok || n < least || n > most {
		return wp.Failure(key + ": " + digits + " must be a whole number from " + wp.FormatInt(least) + " to " + wp.FormatInt(most))
	}
	*v = n
	return nil
}

// burstOf is koordlet's calcStaticCPUBurstVal. The proxy cuts it to the quota of the moment, because the kernel refuses more.
func (s strategy) burstOf(limit int64) int64 {
	if !s.burst {
		return 0
	}
	return limit * s.burstPercent / 100
}
