package host

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/status"
	"github.com/wasmproxy/wasmproxy/runtime/unitfile"
)

// Running is the process that kubelet runs in.
type Running struct {
	ID int
	// Args are kubelet's, with the program's name. They are nil if kubelet is a part of another program, such as k3s.
	Args []string
}

// RunningKubelet returns nil if no kubelet runs, or none can be seen. kubelet is the main process of its unit, or a
// process of the host itself: any user may call a program kubelet, and a container may have one of its own.
func (h *Host) RunningKubelet(ctx context.Context) *Running {
	s, proc := h.systemctl(), h.Root.proc()
	main := s.mainProcess(ctx, kubeletUnit)
	if proc.file(main, "comm") != "kubelet\n" {
		names, _ := fs.Glob(os.DirFS(string(proc)), "[0-9]*/comm")
		var all []int
		for _, file := range names {
			process, _ := strconv.Atoi(filepath.Dir(file))
			if proc.file(process, "comm") == "kubelet\n" && proc.isHosts(process) {
				all = append(all, process)
			}
		}
		if len(all) > 0 {
			main = slices.Min(all) // the first one that started
		}
	}
	if main > 0 {
		return &Running{main, strings.Split(strings.TrimRight(proc.file(main, "cmdline"), "\x00"), "\x00")}
	}
	for _, m := range managers() {
		for _, unit := range m.units {
			if process := s.mainProcess(ctx, unit); m.inUnit && process > 0 {
				return &Running{ID: process}
			}
		}
	}
	return nil
}

// KubeletUnit returns the unit that starts kubelet: kubelet.service, or that of a program which has kubelet in it. It
// is empty if the host has neither.
func (h *Host) KubeletUnit() string {
	if h.Root.hasUnit(kubeletUnit) {
		return kubeletUnit
	}
	if m := findManager(h.Root, false); m != nil {
		return m.units[slices.IndexFunc(m.units, h.Root.hasUnit)]
	}
	return ""
}

// isHosts reports whether a process belongs to root, has the host's process ids, and sees its files. Some hosts have a
// mount namespace for kubelet, which begins with the same files.
func (p proc) isHosts(process int) bool {
	_, users, _ := strings.Cut(p.file(process, "status"), "\nUid:")
	if ids := strings.Fields(users); len(ids) < 2 || ids[1] != "0" { // the effective one
		return false
	}
	pids, err := os.Readlink(p.path(process, "ns/pid"))
	first, err1 := os.Readlink(p.path(1, "ns/pid"))
	if err != nil || err1 != nil || pids != first {
		return false
	}
	root, err := os.Stat(p.path(process, "root"))
	host, err1 := os.Stat(p.path(1, "root"))
	return err == nil && err1 == nil && os.SameFile(root, host)
}

// proc is the directory in which the kernel tells of processes.
type proc string

func (r Root) proc() proc { return proc(r.Under("/proc")) }

func (p proc) path(process int, name string) string {
	return filepath.Join(string(p), strconv.Itoa(process), name)
}

// file returns what the kernel tells of a process; "" if it does not run.
func (p proc) file(process int, name string) string {
	content, _ := os.ReadFile(p.path(process, name))
	return string(content)
}

// Calls reports whether kubelet is connected to the proxy that has this status. Where kubelet runs in a container, the main
// process of its unit is another one, so a process of root that is called kubelet counts, too: only root can connect as root.
func (r *Running) Calls(s *status.Status) bool {
	return slices.ContainsFunc(s.Peers, func(p status.Peer) bool {
		if r != nil && p.PID == r.ID {
			return true
		}
		return p.UID == 0 && p.Program == "kubelet"
	})
}

// Flag returns the value of a flag. The last one counts. A nil kubelet has none.
func (r *Running) Flag(name string) (value string, ok bool) {
	if r == nil {
		return "", false
	}
	var words []unitfile.Value
	for _, arg := range r.Args {
		words = append(words, unitfile.Plain("", arg))
	}
	return lastFlag(words, name)
}

func errFlag(endpoint string) error {
	return fmt.Errorf("kubelet runs with --%s=%s, which none of the files has that this command changes", runtimeKey.flag, endpoint)
}

// elsewhere returns the endpoint of a kubelet that has its flag from a file that the command does not know. An earlier
// value of a known file does not count, nor does one of a unit that systemd may not have read again.
func (r *Running) elsewhere(root Root, k *kubelet) (endpoint string, ok bool) {
	endpoint, ok = r.Flag(runtimeKey.flag)
	if !ok || k.manager != nil || !r.hasRead(root, k) {
		return "", false
	}
	known := func(file, value string) bool {
		return SameEndpoint(value, endpoint) || strings.HasPrefix(file, unitDir)
	}
	if k.anyFlag(known) {
		return "", false
	}
	return endpoint, true
}

// anyFlag reports whether a file has a flag of the endpoint that is so.
func (k *kubelet) anyFlag(is func(file, value string) bool) bool {
	for _, t := range k.texts {
		has := func(value string) bool { return is(t.path, value) }
		if !t.yaml && slices.ContainsFunc(t.values(runtimeKey), has) {
			return true
		}
	}
	return false
}

// hasRead reports whether the kubelet that runs started after its files were last changed. A nil one has not.
func (r *Running) hasRead(root Root, k *kubelet) bool {
	if r == nil {
		return false
	}
	started, err := root.proc().started(r.ID)
	if err != nil {
		return false
	}
	for _, t := range k.texts {
		if info, err := os.Stat(root.Under(t.path)); err != nil || !started.After(info.ModTime()) {
			return false
		}
	}
	return true
}

// started returns when a process started, at most a second too early.
func (p proc) started(process int) (at time.Time, err error) {
	system, err := os.ReadFile(filepath.Join(string(p), "stat"))
	if err != nil {
		return at, err
	}
	stat, err := os.ReadFile(p.path(process, "stat"))
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
