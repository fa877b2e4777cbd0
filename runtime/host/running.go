package host

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Running is a kubelet that runs.
type Running struct {
	ID   int      // of its process
	Args []string // with the program's name
}

// RunningKubelet returns nil if no kubelet runs, or none can be seen.
func (h *Host) RunningKubelet() *Running {
	names, _ := filepath.Glob(filepath.Join(h.under("/proc"), "[0-9]*/comm"))
	id := func(name string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		return n
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(id(a), id(b)) })
	for _, name := range names {
		if comm, err := os.ReadFile(name); err != nil || strings.TrimSpace(string(comm)) != "kubelet" {
			continue
		}
		if args, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline")); err == nil {
			return &Running{id(name), strings.Split(strings.TrimRight(string(args), "\x00"), "\x00")}
		}
	}
	return nil
}

// Flag returns the value of a flag. The last one counts. A nil kubelet has none.
func (r *Running) Flag(name string) (value string, ok bool) {
	if r == nil {
		return "", false
	}
	for i, arg := range r.Args {
		if v, is := strings.CutPrefix(arg, "--"+name+"="); is {
			value, ok = v, true
		} else if arg == "--"+name && i+1 < len(r.Args) {
			value, ok = r.Args[i+1], true
		}
	}
	return value, ok
}

// checkConfig requires that the kubelet that runs reads the configuration that would be changed. A flag wins over both.
func (h *Host) checkConfig(running *Running, k *kubelet) error {
	if _, ok := running.Flag(runtimeKey.flag); ok || k.manager != nil {
		return nil
	}
	if file, ok := running.Flag("config"); ok && h.under(file) != h.under(k.config) {
		return fmt.Errorf("kubelet runs with --config %s, and this command would change %s: give --kubelet-config %s, or restart kubelet if its unit was changed since it started", file, k.config, file)
	}
	return nil
}

// checkFlag requires that the kubelet that runs has its endpoint from the files that were read, or calls the proxy.
// Otherwise it would be in vain to change the files.
func (r *record) checkFlag(running *Running, k *kubelet) error {
	endpoint, ok := running.Flag(runtimeKey.flag)
	if !ok || k.manager != nil || r.ours(endpoint) { // a manager gives kubelet flags of its own
		return nil
	}
	for _, t := range k.texts {
		for _, value := range t.values(runtimeKey) {
			if !t.yaml && (SameEndpoint(value, endpoint) || r.ours(value)) {
				return nil
			}
		}
	}
	return fmt.Errorf("%w: if kubelet's files were changed since it started, restart it. Else install the proxy by hand first, then change the flag to the proxy's socket, restart kubelet, and run the command again", errFlag(endpoint))
}

func errFlag(endpoint string) error {
	return fmt.Errorf("kubelet runs with --%s=%s, which none of the files has that this command changes", runtimeKey.flag, endpoint)
}

// elsewhere returns the endpoint of a kubelet that has its flag from a file that the command does not know. An earlier
// value of a known file does not count, nor does one of a unit that systemd may not have read again.
func (h *Host) elsewhere(running *Running, k *kubelet) (endpoint string, ok bool) {
	endpoint, ok = running.Flag(runtimeKey.flag)
	if !ok || k.manager != nil || !h.hasRead(running, k) {
		return "", false
	}
	for _, t := range k.texts {
		for _, value := range t.values(runtimeKey) {
			if !t.yaml && (SameEndpoint(value, endpoint) || strings.HasPrefix(t.path, unitDir)) {
				return "", false
			}
		}
	}
	return endpoint, true
}

// hasRead reports whether the kubelet that runs started after its files were last changed.
func (h *Host) hasRead(running *Running, k *kubelet) bool {
	if running == nil {
		return false
	}
	started, err := h.started(running.ID)
	if err != nil {
		return false
	}
	for _, t := range k.texts {
		if info, err := os.Stat(h.under(t.path)); err != nil || !started.After(info.ModTime()) {
			return false
		}
	}
	return true
}

// started returns when a process started, at most a second too early.
func (h *Host) started(process int) (at time.Time, err error) {
	proc := h.under("/proc")
	system, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return at, err
	}
	stat, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(process), "stat"))
	if err != nil {
		return at, err
	}
	_, boot, _ := strings.Cut(string(system), "\nbtime ")
	boot, _, _ = strings.Cut(boot, "\n")
	seconds, err := strconv.ParseInt(boot, 10, 64)
	if err != nil {
		return at, err
	}
	const starttime, tick = 22 - 3, 10 * time.Millisecond // proc(5): of the fields behind the name; USER_HZ is 100
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= starttime {
		return at, fmt.Errorf("/proc/%d/stat is short", process)
	}
	ticks, err := strconv.ParseInt(fields[starttime], 10, 64)
	return time.Unix(seconds, 0).Add(time.Duration(ticks) * tick), err
}
