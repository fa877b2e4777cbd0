package demo

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// cpuStatFile is the file of a cgroup that counts CPU time.
const cpuStatFile = "cpu.stat"

// cpuPressureFile is the file of a cgroup that tells how long its processes wait for a CPU.
const cpuPressureFile = "cpu.pressure"

// wanted is the CPU time that each container would use in a second, in µs: 0.7 CPUs.
const wanted = 700_000

// cpuStat is the content of cpu.stat, with times in µs.
type cpuStat struct{ usage, periods, throttled, throttledTime int64 }

// pressure is what was written to cpu.pressure, and for how many µs some process has waited until then.
type pressure struct {
	text  string
	total int64
}

// use is a second of load. Containers that run use CPU time, as far as their cpu.max lets them, and it is counted in cpu.stat: theirs,
// their pods', and the node's. The time for which they are throttled is in cpu.pressure of the same.
func (r *memoryRuntime) use() {
	r.mu.Lock()
	defer r.mu.Unlock()
	waits := map[string]int64{} // for how many µs of the second, by cgroup
	for _, c := range r.containers {
		limit, err := os.ReadFile(filepath.Join(r.cgroups.Dir, c.group, rules.CPUMax))
		if err != nil || !c.running {
			continue
		}
		of := spend(rules.ParseLimit(rules.CPUMax, strings.TrimSpace(string(limit))))
		r.count(c.group, of)
		for _, g := range withParents(c.group) {
			waits[g] = max(waits[g], of.throttledTime)
		}
	}
	for g, us := range waits { // all averages in cpu.pressure are those of the last second, in percent
		file := filepath.Join(r.cgroups.Dir, g, cpuPressureFile)
		before := r.waited[g]
		if is, err := os.ReadFile(file); err == nil && string(is) != before.text {
			continue // what somebody else has written there stays
		}
		total := before.total + us
		share := float64(us) / float64(time.Second/time.Microsecond) * 100
		const form = "some avg10=%.2[1]f avg60=%.2[1]f avg300=%.2[1]f total=%[2]d\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
		text := fmt.Sprintf(form, share, total)
		r.waited[g] = pressure{text, total}
		_ = regular.Replace(file, []byte(text), 0o644) // else the next second does
	}
}

// withParents are the cgroups of a container, its pod and the node.
func withParents(group string) []string { return []string{group, path.Dir(group), "/"} }

// count adds what a container has used. The caller has the lock.
func (r *memoryRuntime) count(group string, of cpuStat) {
	for _, g := range withParents(group) {
		all := r.used[g]
		if all == nil {
			all = new(cpuStat)
			r.used[g] = all
		}
		all.usage += of.usage
		if g == group { // the limits above do not throttle
			all.periods += of.periods
			all.throttled += of.throttled
			all.throttledTime += of.throttledTime
		}
		text := fmt.Appendf(nil, "usage_usec %d\nuser_usec %[1]d\nsystem_usec 0\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d\n",
			all.usage, all.periods, all.throttled, all.throttledTime)
		_ = regular.Replace(filepath.Join(r.cgroups.Dir, g, cpuStatFile), text, 0o644) // else the next second does
	}
}

// spend is what a container uses in a second under a limit.
func spend(limit rules.Limit) cpuStat {
	if limit.Amount == 0 || limit.Period == 0 {
		return cpuStat{usage: wanted}
	}
	periods := int64(time.Second/time.Microsecond) / limit.Period
	want := wanted / periods
	if want <= limit.Amount {
		return cpuStat{usage: wanted, periods: periods}
	}
	return cpuStat{usage: periods * limit.Amount, periods: periods, throttled: periods, throttledTime: periods * (want - limit.Amount)}
}
