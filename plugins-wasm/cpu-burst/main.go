// Command cpu-burst is a plugin that lets containers use more CPU than their limit for a while, as koordlet's
// CPU burst strategy: with the kernel's burst, and with a larger CFS quota while the node has room. It is a control
// loop: all that it does it does in Tick. README.md is its manual.
package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

// tickMS is how often cpu.stat is read, as often as koordlet does.
const tickMS = 1_000

func main() {} // never runs: the proxy calls the handlers

func init() {
	wp.Plugin("cpu-burst", "1.0.0").
		Describe("CPU burst of containers, after koordlet's strategy").
		License("Apache-2.0").
		Needs(wp.CapStoreRead, wp.CapCgroupRead, wp.CapCgroupWrite, wp.CapUpdateOthers, wp.CapPodLimits).
		KeepMemory().
		ConfigSchema(schema).
		OnConfigure(configure).
		OnTick(tick, tickMS)
}

// container is one that the loop is about.
type container struct {
	wp.FoundContainer
	pod           *pod
	strategy      strategy
	limit, period int64   // kubelet's quota, 0 for none, and its period, in µs
	was           *record // nil if the tick before has none
	is            int     // the place of its record in after
}

// pod is one whose containers may burst.
type pod struct {
	wp.FoundPod
	was   *record
	is    int
	burst int64 // the sum of its containers', in µs
}

func tick(*wp.Tick) error {
	now := wp.Now()
	if last >= now { // the clock was set back
		forget()
	}
	all, shared, err := look(now)
	if err != nil {
		return err
	}
	if err := scale(all, shared, now); err != nil {
		return err
	}
	before, after, next, last = after, nil, 0, now
	return nil
}

// look returns the containers that the loop is about, and the state of the CPUs that they share.
func look(now int64) (all []container, shared state, err error) {
	after = nil
	room, err := nodePool(now)
	if err != nil {
		return nil, unknown, err
	}
	for _, p := range wp.Pods("") {
		if p.State() == "notready" { // it has ended, or its cgroup is that of the sandbox which has taken its place
			continue
		}
		class, _ := p.Label(qosLabel)
		if class == "LSE" || class == "LSR" || class == "BE" {
			room.exclude(p, class, now)
			continue
		}
		all = append(all, containersOf(p)...)
	}
	return all, room.state(), nil
}

// containersOf returns those containers of a pod that have a CPU limit, or had one at the tick before.
func containersOf(p wp.FoundPod) (all []container) {
	s, of := strategyOf(p.Pod), &pod{FoundPod: p}
	of.was, of.is = note(p.ID())
	for _, c := range p.Containers() {
		if !c.Resources().Reported() { // they are the kernel's, and its quota may be raised already
			continue
		}
		is := container{FoundContainer: c, pod: of, strategy: s, limit: max(c.Resources().CPUQuota(), 0), period: c.Resources().CPUPeriod()}
		if is.period <= 0 {
			is.period = 100_000 // the kernel's default
		}
		if is.was, is.is = note(c.ID()); is.limit > 0 || is.was != nil {
			all = append(all, is)
		}
	}
	return all
}

// scale sets burst and quota of all containers, and the burst of their pods.
func scale(all []container, shared state, now int64) error {
	found := make([]wp.FoundContainer, len(all))
	for i, c := range all {
		found[i] = c.FoundContainer
	}
	files, err := wp.ReadCgroups(found, "cpu.stat", "cpu.max")
	if err != nil {
		return err
	}
	for i, row := range files {
		c := &all[i]
		if row[0].Errno == 0 {
			after[c.is].at, after[c.is].stat = now, parseStat(row[0].Text)
			if err := c.scale(quotaOf(row[1].Text), shared); err != nil {
				return err
			}
		}
		if next := i + 1; next < len(all) && all[next].pod == c.pod {
			continue
		}
		if err := c.pod.setBurst(); err != nil {
			return err
		}
	}
	return nil
}

// scale is koordlet's applyCPUBurst and applyCFSQuotaBurst for a container. A value stays until it is set again. So the
// plugin sets what is to change, and when it begins all that differs from kubelet's.
func (c *container) scale(quota int64, shared state) error {
	is := &after[c.is]
	if c.was != nil {
		is.burst, is.tokens, is.capacity = c.was.burst, c.was.tokens, c.was.capacity
	}
	if c.limit == 0 { // kubelet has lifted the limit
		is.at, is.burst = 0, 0
		if err := set("cpu.max", "max", c.SetCgroup); err != nil {
			return err
		}
		return set("cpu.max.burst", "0", c.SetCgroup)
	}
	target := c.target(quota, c.operation(is).onNode(shared))
	if wp.Node.CgroupVersion() == 1 && target > quota {
		target = c.withinPod(target)
	}
	if target != quota || c.was == nil && quota != c.limit {
		if err := set("cpu.max", wp.FormatInt(target), c.SetCgroup); err != nil {
			return err
		}
	}
	burst := c.strategy.burstOf(c.limit)
	c.pod.burst += min(burst, c.limit)
	if burst == is.burst {
		return nil
	}
	is.burst = burst
	return set("cpu.max.burst", wp.FormatInt(burst), c.SetCgroup)
}

// withinPod bounds a quota by the pod's on cgroup v1, where the kernel refuses a larger one.
func (c *container) withinPod(quota int64) int64 {
	text, err := c.pod.ReadCgroup("cpu.max")
	if wp.Handled(err, wp.ErrNotFound) || wp.Handled(err, wp.ErrUnsupported) {
		return quota
	}
	if limit := quotaOf(text); limit > 0 && limit < quota {
		once("cpu.max", "of a container stays within its pod's: this node has cgroup v1")
		return max(limit, c.limit)
	}
	return quota
}

// setBurst has a pod's cgroup save what its containers' save, or it would throttle them. It is at most their limits:
// a larger one would keep kubelet from lowering the pod's limit.
func (p *pod) setBurst() error {
	is := &after[p.is]
	is.burst, is.at = p.burst, 1
	had := int64(0)
	if p.was != nil {
		had = p.was.burst
	}
	if p.burst == had {
		return nil
	}
	return set("cpu.max.burst", wp.FormatInt(p.burst), p.SetCgroup)
}

// set writes a file. The log says once why one is not set.
func set(file, value string, to func(file, value string) error) error {
	err := to(file, value)
	for _, reason := range [...]wp.Errno{wp.ErrUnsupported, wp.ErrConflict, wp.ErrDenied, wp.ErrNotFound} {
		if wp.Handled(err, reason) {
			once(file, "is not set: "+reason.Error())
			return nil
		}
	}
	return err
}

// said are the warnings that the log has already. A pod has one of its own, and a node has many in some weeks.
var said []string

const maxSaid = 1_000

// once logs a warning about a file, unless the log has it already.
func once(file, warning string) {
	text := file + " " + warning
	for _, s := range said {
		if s == text {
			return
		}
	}
	if len(said) == maxSaid { // of pods that have gone, most of them
		said = nil
	}
	said = append(said, text)
	wp.Log(wp.LevelWarn, text)
}
