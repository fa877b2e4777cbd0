package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/containerd/nri/pkg/api"

	"github.com/wasmproxy/wasmproxy/abi"
)

// cgroupSet is the one function beyond the core, for guests of which the operator has chosen the hooks: it sets two files of the
// event's container. NRI has no field for them.
func cgroupSet(c *call) int64 {
	o, file, value, e := abi.Object(c.i32(0)), c.in(1), c.in(3), c.event
	form, known := containerFiles[file]
	switch {
	case !e.granted.Has(abi.CgroupWrite):
		return int64(abi.Denied)
	case o != abi.Container || !abi.CgroupWritable(o).Has(e.hook):
		return int64(abi.ReadOnly)
	case !known:
		return int64(abi.Unsupported)
	case !form.MatchString(value):
		return int64(abi.Invalid)
	}
	target := "container cgroup file " + file
	if before, ok := e.earlier[target]; ok && before != text(value) {
		return int64(abi.Conflict)
	}
	e.changes = append(e.changes, change{file: file, target: target, value: value})
	return 0
}

var containerFiles = map[string]*regexp.Regexp{"cpu.idle": regexp.MustCompile(`^[01]$`), "cpu.max.burst": regexp.MustCompile(`^\d{1,14}$`)}

// pending are the files of containers that are to be written when they have started or were updated.
type pending struct {
	mu    sync.Mutex
	files map[string]map[string]string // by container and file
}

func (p *pending) add(id string, changes []change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range changes {
		if c.file == "" {
			continue
		}
		if p.files[id] == nil {
			p.files[id] = map[string]string{}
		}
		p.files[id][c.file], _ = c.value.(string)
	}
}

func (p *pending) take(id string) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	files := p.files[id]
	delete(p.files, id)
	return files
}

// write writes what is pending for a container. Its cgroup is a path, as with the driver cgroupfs.
func (h *host) write(c *api.Container) error {
	var errs []error
	for file, value := range h.pending.take(c.GetId()) {
		path := filepath.Join("/sys/fs/cgroup", c.GetLinux().GetCgroupsPath(), file)
		if !h.unified {
			file = strings.Replace(file, "cpu.max.burst", "cpu.cfs_burst_us", 1)
			path = filepath.Join("/sys/fs/cgroup/cpu", c.GetLinux().GetCgroupsPath(), file)
		}
		errs = append(errs, os.WriteFile(path, []byte(value), 0))
	}
	return errors.Join(errs...)
}

func (h *host) notifyAndWrite(ctx context.Context, hook abi.Hook, pod *api.PodSandbox, c *api.Container) error {
	return errors.Join(h.notify(ctx, hook, pod, c), h.write(c))
}
