package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

// steps is in how many ticks memory.high goes from its value by the formula to the ceiling.
const steps = 4

// The host takes 256 changes of one call, and no more work than its fuel: beyond that nothing of a tick would count.
const (
	portion = 512 // containers whose pressure a tick reads; a node with more takes several ticks for a round
	room    = 128 // those of them that it looks at in detail, and changes, at most
)

var (
	first       int   // the container with which the next tick begins
	known, next table // containers that are raised, have waited, or were looked at: of the round before, and of this one
	// complete tells that all that are raised are known. A new instance knows none.
	complete bool
	// late tells that a tick of this round had no room for all.
	late bool
)

// task is a container that a tick has to look at.
type task struct {
	container wp.FoundContainer
	id        string
	flags     flags
	stalled   int64 // hundredths of a percent of the time
}

// ranks is how many kinds of tasks there are: containers that stall and have waited, the longest first, those that stall
// by tenths of the time, and those that do not stall.
const ranks = maxWaits + 11

// tick raises memory.high of containers that stall for memory, and lowers it again. What it has no room for comes
// first in the next one.
func tick(*wp.Tick) error {
	if !config.adapt || !supported() {
		return nil
	}
	all := wp.Containers()
	if first >= len(all) {
		first = 0
	}
	last := min(first+portion, len(all))
	some := all[first:last]
	pressure, err := wp.ReadCgroups(some, "memory.pressure")
	if wp.Handled(err, wp.ErrDenied) {
		once("memory.pressure", "is not read: cgroup.read is not granted")
		return nil
	}
	if err != nil {
		return err
	}
	tasks, told := tasksOf(some, pressure)
	if !told {
		once("memory.pressure", "is UNSUPPORTED by this node: memory.high stays")
	}
	if err := carryOut(tasks); err != nil {
		return err
	}
	if first = last; last == len(all) {
		for i, id := range known.ids { // some that a round passes over, since others before them have gone
			if f := known.flags[i]; f&raised != 0 && next.get(id) == 0 {
				if _, ok := wp.FindContainer(id); ok {
					next.add(id, f)
				}
			}
		}
		complete = complete || !late
		known, next, first, late = next, table{}, 0, false
	}
	return nil
}

// tasksOf returns what there is to do, the most urgent first. told is false if no container's pressure can be told.
func tasksOf(some []wp.FoundContainer, pressure [][]wp.CgroupFile) (tasks [ranks][]task, told bool) {
	told = len(some) == 0
	for i, row := range pressure {
		stalled, ok := stall(row[0].Text)
		told = told || ok || row[0].Errno != wp.ErrUnsupported
		quiet := stalled < 100*config.raiseAbove
		if !ok {
			continue
		}
		if quiet && complete && !known.some { // spares the host a call
			continue
		}
		id := some[i].ID()
		f := known.get(id)
		seen := complete || f&looked != 0
		if quiet && seen && f&raised == 0 {
			if !complete {
				next.add(id, looked)
			}
			continue
		}
		rank := ranks - 1
		switch waits := f.waits(); {
		case quiet:
		case waits > 0:
			rank = maxWaits - waits
		default:
			rank = maxWaits + int(9-min(stalled/1000, 9))
		}
		tasks[rank] = append(tasks[rank], task{some[i], id, f, stalled})
	}
	return tasks, told
}

// carryOut does as much as there is room for, and notes what waits.
func carryOut(tasks [ranks][]task) error {
	var now []task
	var containers []wp.FoundContainer
	for _, rank := range tasks {
		for _, t := range rank {
			if len(now) < room {
				now, containers = append(now, t), append(containers, t.container)
				continue
			}
			next.add(t.id, t.flags&raised|waited(min(t.flags.waits()+1, maxWaits)))
			late = true
		}
	}
	files, err := wp.ReadCgroups(containers, "memory.high", "memory.current")
	if err != nil {
		return err
	}
	for i, row := range files {
		f, err := adapt(now[i], row)
		if err != nil {
			return err
		}
		next.add(now[i].id, f)
	}
	return nil
}

// adapt moves memory.high of a container by a step, and returns what is known of it then. It is not lowered below
// what is used: the container would stall at once.
func adapt(t task, files []wp.CgroupFile) (flags, error) {
	high, limited := wp.ParseInt(files[0].Text)
	if !limited {
		return looked, nil
	}
	used, _ := wp.ParseInt(files[1].Text)
	v, err := valuesOf(t.container.Container)
	if err != nil || v.high == none { // create has reported the error
		return looked, nil
	}
	step := max((v.ceiling-v.high)/steps/pageSize, 1) * pageSize
	next := high
	switch {
	case t.stalled >= 100*config.raiseAbove:
		next = min(high+step, v.ceiling)
	case t.stalled < 100*config.lowerBelow && used <= max(high-step, v.high):
		next = high - step
	}
	f := looked
	if next = max(next, v.high); next > v.high {
		f |= raised
	}
	if next == high {
		return f, nil
	}
	return f, set(t.container.Resources().Resources, t.container.SetCgroup, "memory.high", next)
}

// stall returns for how much of the last ten seconds a process waited for memory, in
// hundredths of a percent: avg10 of the line "some".
func stall(pressure string) (hundredths int64, ok bool) {
	const before = "some avg10="
	if len(pressure) < len(before) || pressure[:len(before)] != before {
		return 0, false
	}
	for i := len(before); i < len(pressure) && pressure[i] != ' '; i++ {
		switch c := pressure[i]; {
		case '0' <= c && c <= '9':
			hundredths = hundredths*10 + int64(c-'0')
		case c != '.':
			return 0, false
		}
	}
	return hundredths, true
}
