package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

// steps is in how many ticks memory.high goes from its value by the formula to the ceiling.
const steps = 4

var (
	// raised are the ids of the containers whose memory.high is above the formula's.
	raised []string
	// complete tells that raised has all of them. A new instance knows none.
	complete bool
)

// tick raises memory.high of containers that stall for memory, and lowers it again. It
// looks at the details of a container only if there is something to do.
func tick(*wp.Tick) error {
	if !config.adapt || !supported() {
		return nil
	}
	all := wp.Containers()
	files, err := wp.ReadCgroups(all, "memory.high", "memory.pressure", "memory.current")
	if wp.Handled(err, wp.ErrDenied) {
		once("memory.pressure", "is not read: cgroup.read is not granted")
		return nil
	}
	if err != nil {
		return err
	}
	var now []string
	known := len(all) == 0
	for i, row := range files {
		high, limited := wp.ParseInt(row[0].Text)
		stalled, ok := stall(row[1].Text)
		known = known || ok || row[1].Errno != wp.ErrUnsupported
		if !limited || !ok {
			continue
		}
		if quiet := stalled < 100*config.raiseAbove; quiet && complete && !contains(raised, all[i]) {
			continue
		}
		used, _ := wp.ParseInt(row[2].Text)
		above, err := adapt(all[i], high, used, stalled)
		if err != nil {
			return err
		}
		if above {
			now = append(now, all[i].ID())
		}
	}
	if !known {
		once("memory.pressure", "is UNSUPPORTED by this node: memory.high stays")
	}
	raised, complete = now, true
	return nil
}

// contains spares the host a call if there is nothing to look for.
func contains(ids []string, c wp.FoundContainer) bool {
	if len(ids) == 0 {
		return false
	}
	id := c.ID()
	for _, other := range ids {
		if other == id {
			return true
		}
	}
	return false
}

// adapt moves memory.high of a container by a step, and tells whether it is then above the
// formula's. It is not lowered below what is used: the container would stall at once.
func adapt(c wp.FoundContainer, high, used, stalled int64) (above bool, err error) {
	v, err := valuesOf(c.Container)
	if err != nil || v.high == none { // create has reported the error
		return false, nil
	}
	step := max((v.ceiling-v.high)/steps/pageSize, 1) * pageSize
	next := high
	switch {
	case stalled >= 100*config.raiseAbove:
		next = min(high+step, v.ceiling)
	case stalled < 100*config.lowerBelow && used <= max(high-step, v.high):
		next = high - step
	}
	if next = max(next, v.high); next == high {
		return high > v.high, nil
	}
	return next > v.high, set(c.Resources().Resources, c.SetCgroup, "memory.high", next)
}

// stall returns for how much of the last ten seconds a process waited for memory, in
// hundredths of a percent: avg10 of the line "some".
func stall(pressure string) (hundredths int64, ok bool) {
	const before = "some avg10="
	if len(pressure) < len(before) || pressure[:len(before)] != before {
		return 0, false
	}
	var digits string
	for i := len(before); i < len(pressure) && pressure[i] != ' '; i++ {
		if pressure[i] != '.' {
			digits += pressure[i : i+1]
		}
	}
	return wp.ParseInt(digits)
}
