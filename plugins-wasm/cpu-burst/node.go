package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

// state is how busy the CPUs are that pods share.
type state int

const (
	unknown  state = iota
	idle           // below nine tenths of the threshold
	cooling        // below the threshold
	overload       // from the threshold on
)

// window is over how many ticks the use is averaged.
const window = 5

// span is how much CPU time was used between two ticks.
type span struct{ elapsed, used int64 } // µs

// history are the last spans, the newest last; spent is the usage of the node at the last tick.
var (
	history []span
	spent   int64
)

// pool are the CPUs that all pods share, after koordlet's getNodeStateForBurst: those of the node without what pods of the classes
// LSE and LSR request. What these and pods of the class BE use does not count. What the node uses besides does.
type pool struct {
	millis int64 // CPUs, in thousandths
	span
}

// nodePool returns the CPUs of the node, and how much of them was used since the last tick.
func nodePool(now int64) (pool, error) {
	room := pool{millis: wp.Node.CPUs() * 1_000}
	text, err := wp.Node.ReadCgroup("cpu.stat")
	if wp.Handled(err, wp.ErrUnsupported) || wp.Handled(err, wp.ErrNotFound) {
		once("cpu.stat", "of the node cannot be read: no quota is raised")
		return room, nil
	}
	if wp.Handled(err, wp.ErrDenied) {
		return room, wp.Failure("cgroup.read is not granted, without which cpu.stat cannot be read: grant it in the plugin's JSON")
	}
	used := parseStat(text).usage
	if last > 0 && spent > 0 && now > last {
		room.span = span{(now - last) / 1_000, used - spent}
	}
	spent = used
	return room, err
}

// exclude takes a pod out that has CPUs of its own, or uses only those that are left over.
func (r *pool) exclude(p wp.FoundPod, class string, now int64) {
	if class != "BE" {
		for _, c := range p.Containers() {
			_, err := c.ReadCgroup("cpu.stat")
			if wp.Handled(err, wp.ErrNotFound) { // it has ended, as init containers and earlier attempts do
				continue
			}
			wp.Handled(err, wp.ErrUnsupported)
			shares := c.Resources().CPUShares()
			if wp.Handled(wp.ReadError(), wp.ErrUnsupported) {
				continue
			}
			r.millis -= (shares*1_000 + 1_023) / 1_024
		}
	}
	text, err := p.ReadCgroup("cpu.stat")
	if wp.Handled(err, wp.ErrNotFound) || wp.Handled(err, wp.ErrUnsupported) {
		return
	}
	was, is := note(p.ID())
	after[is].at, after[is].stat = now, parseStat(text)
	if was != nil {
		r.used -= after[is].usage - was.usage
	}
}

// state tells how busy the CPUs were in the last ticks.
func (r *pool) state() state {
	if r.elapsed > 0 {
		history = append(history, r.span)
	}
	if len(history) == 0 {
		return unknown
	}
	history = history[max(len(history)-window, 0):]
	var sum span
	for _, s := range history {
		sum.elapsed += s.elapsed
		sum.used += s.used
	}
	// Both in hundred-thousandths of a CPU's µs. koordlet takes a pool of no CPUs for used up.
	switch used, had := sum.used*100_000, sum.elapsed*r.millis*config.threshold; {
	case r.millis <= 0 || used >= had:
		return overload
	case used*10 >= had*9:
		return cooling
	}
	return idle
}
