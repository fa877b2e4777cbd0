// Command record writes loads.json: what the kernel counts in cpu.stat of ten containers' cgroups in one minute. Run it as root on
// a node with cgroup v1 or v2, in the folder of the plugin:
//
//	go run ./testdata/record > testdata/koordlet/loads.json
//
// Each load is a process in a cgroup with a CPU quota. All run at the same time.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	steps  = 60 // one a second
	period = 100_000
)

// load is what a process does: how much of each period of 100 ms it works, in milliseconds, by the second.
type load struct {
	name    string
	quota   int64 // µs
	threads int
	work    func(second int) int
}

func always(ms int) func(int) int { return func(int) int { return ms } }

var loads = []load{
	{"steady", 20_000, 1, always(10)},
	{"full", 20_000, 1, always(20)},
	{"throttled", 10_000, 1, always(100)},
	{"threads", 20_000, 4, always(100)},
	{"idle", 10_000, 1, always(0)},
	{"bursty", 10_000, 1, func(s int) int { return []int{40, 40, 0, 0, 0}[s%5] }},
	{"spikes", 10_000, 1, func(s int) int { return []int{15, 2, 2, 2}[s%4] }},
	{"ramp", 20_000, 1, func(s int) int { return s * 2 / 3 }},
	{"ends", 10_000, 1, func(s int) int { return max(0, 1-s/30) * 100 }},
	{"begins", 15_000, 1, func(s int) int { return s / 30 * 100 }},
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == "work" {
		i, _ := strconv.Atoi(os.Args[2])
		work(loads[i])
		return
	}
	if err := record(); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// work does what the load says, once its parent has put it into its cgroup.
func work(l load) {
	os.Stdin.Read(make([]byte, 1))
	start := time.Now()
	for range l.threads {
		go func() {
			for n := 0; ; n++ {
				begin := start.Add(time.Duration(n) * period * time.Microsecond)
				time.Sleep(time.Until(begin))
				for end := begin.Add(time.Duration(l.work(n/10)) * time.Millisecond); time.Now().Before(end); {
				}
			}
		}()
	}
	time.Sleep((steps + 5) * time.Second)
}

// group is a cgroup: directories in the hierarchies that the loads need.
type group struct{ cpu, usage string }

func newGroup(name string) (group, error) {
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(root + "/cgroup.controllers"); err == nil {
		dir := filepath.Join(root, name)
		return group{dir, dir}, os.MkdirAll(dir, 0o755)
	}
	g := group{filepath.Join(root, "cpu", name), filepath.Join(root, "cpuacct", name)}
	return g, errors.Join(os.MkdirAll(g.cpu, 0o755), os.MkdirAll(g.usage, 0o755))
}

func (g group) v2() bool { return g.cpu == g.usage }

func (g group) limit(quota int64) error {
	if g.v2() {
		return os.WriteFile(g.cpu+"/cpu.max", fmt.Append(nil, quota, " ", period), 0)
	}
	return errors.Join(os.WriteFile(g.cpu+"/cpu.cfs_period_us", fmt.Append(nil, period), 0), os.WriteFile(g.cpu+"/cpu.cfs_quota_us", fmt.Append(nil, quota), 0))
}

func (g group) join(pid int) error {
	return errors.Join(os.WriteFile(g.cpu+"/cgroup.procs", fmt.Append(nil, pid), 0), os.WriteFile(g.usage+"/cgroup.procs", fmt.Append(nil, pid), 0))
}

// stat returns usage in µs, periods, throttled periods and throttled time in µs.
func (g group) stat() (s [4]int64, err error) {
	text, err := os.ReadFile(g.cpu + "/cpu.stat")
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, _ := strconv.ParseInt(value, 10, 64)
		switch name {
		case "usage_usec":
			s[0] = n
		case "nr_periods":
			s[1] = n
		case "nr_throttled":
			s[2] = n
		case "throttled_usec":
			s[3] = n
		case "throttled_time":
			s[3] = n / 1_000
		}
	}
	if g.v2() || err != nil {
		return s, err
	}
	ns, err := os.ReadFile(g.usage + "/cpuacct.usage")
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(ns)), 10, 64)
	s[0] = n / 1_000
	return s, err
}

// recording is the file.
type recording struct {
	Kernel string              `json:"kernel"`
	Cgroup int                 `json:"cgroup"`
	CPUs   int                 `json:"cpus"`
	Node   []int64             `json:"node"` // usage of the node in µs, each second
	Loads  map[string]recorded `json:"loads"`
}

// recorded is one load: usage in µs, periods, throttled periods and throttled time in µs, each second.
type recorded struct {
	Quota int64      `json:"quota"` // µs of each 100,000
	Stat  [][4]int64 `json:"stat"`
}

func record() error {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return err
	}
	r := recording{Kernel: strings.TrimSpace(string(release)), Cgroup: 1, CPUs: runtime.NumCPU(), Loads: map[string]recorded{}}
	root, err := newGroup("")
	if err != nil {
		return err
	}
	if root.v2() {
		r.Cgroup = 2
	}
	groups := make([]group, len(loads))
	for i, l := range loads {
		if groups[i], err = newGroup("record-" + l.name); err != nil {
			return err
		}
		stop, err := start(i, groups[i])
		if err != nil {
			return err
		}
		defer stop()
	}
	begin := time.Now()
	for n := range steps {
		time.Sleep(time.Until(begin.Add(time.Duration(n) * time.Second)))
		node, err := root.stat()
		if err != nil {
			return err
		}
		r.Node = append(r.Node, node[0])
		for i, l := range loads {
			s, err := groups[i].stat()
			if err != nil {
				return err
			}
			r.Loads[l.name] = recorded{l.quota, append(r.Loads[l.name].Stat, s)}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// start starts the load in its group.
func start(i int, g group) (stop func(), err error) {
	cmd := exec.Command("/proc/self/exe", "work", strconv.Itoa(i))
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.Remove(g.cpu)
		os.Remove(g.usage)
	}
	if err := errors.Join(g.limit(loads[i].quota), g.join(cmd.Process.Pid)); err != nil {
		stop()
		return nil, err
	}
	_, err = in.Write([]byte("x"))
	return stop, err
}
