package codecache

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
)

// Limits are what one compilation may take.
type Limits struct {
	Memory uint64        // bytes of address space beyond what Go reserves at its start
	CPU    time.Duration // processor time, in whole seconds
	Wall   time.Duration
	Output int64 // bytes of the result
}

// DefaultLimits are well above what the largest module takes that is no attack:
// a Go plugin of 3.3 MB takes 2 s and 60 MB.
var DefaultLimits = Limits{Memory: 1 << 30, CPU: 30 * time.Second, Wall: time.Minute, Output: 64 << 20}

// niceness lets the node's other work go before a compilation.
const niceness = 10

// Confine holds the calling process to the limits from now on, and makes it
// give way to others. A child calls it before it reads the module.
func Confine(l Limits) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("confining the process that compiles: %w", err)
		}
	}()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	var pages uint64 // Go reserves more than a GiB of address space at its start, and uses little of it
	if _, err := fmt.Sscan(string(statm), &pages); err != nil {
		return fmt.Errorf("reading /proc/self/statm: %w", err)
	}
	seconds := uint64((l.CPU + time.Second - 1) / time.Second)
	for _, r := range []struct {
		resource int
		limit    uint64
	}{
		{syscall.RLIMIT_AS, pages*uint64(os.Getpagesize()) + l.Memory},
		{syscall.RLIMIT_CPU, seconds},
		{syscall.RLIMIT_FSIZE, uint64(l.Output)},
		{syscall.RLIMIT_CORE, 0},
	} {
		if err := syscall.Setrlimit(r.resource, &syscall.Rlimit{Cur: r.limit, Max: r.limit}); err != nil {
			return fmt.Errorf("setting limit %d to %d: %w", r.resource, r.limit, err)
		}
	}
	// The kernel ends this process before pods, if the node's memory is used up.
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(oomScore)), 0); err != nil {
		return fmt.Errorf("raising its oom_score_adj to %d: %w", oomScore, err)
	}
	runtime.GOMAXPROCS(1)
	debug.SetMemoryLimit(int64(l.Memory / 4 * 3)) // collect sooner rather than fail
	return giveWay()
}

// oomScore is the most that there is, that of pods without a request: the plugin is loaded again later, and a container's
// work may be lost. The proxy itself has -999 by its unit, which a child inherits.
const oomScore = 1000

// giveWay lowers the priority of every thread there is; new ones inherit it. A lower one than that stays: in a container without
// CAP_SYS_NICE the kernel refuses to raise it.
func giveWay() error {
	const offset = 20 // of what the system call returns, above niceness
	held, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if err != nil {
		return fmt.Errorf("reading its priority: %w", err)
	}
	if offset-held >= niceness {
		return nil
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err == nil {
			err = syscall.Setpriority(syscall.PRIO_PROCESS, id, niceness)
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("lowering its priority: %w", err)
		}
	}
	return nil
}
