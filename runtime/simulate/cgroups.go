package simulate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/pods"
)

// Write is a cgroup file that was written, by its path beneath the cgroup mount.
type Write struct {
	Path, Before, After string
}

// tree is a directory that looks like a cgroup mount as far as the proxy looks at it.
type tree struct {
	dir     string
	version int
	before  map[string]string // the files as they were made
	fs      *cgroup.FS
}

func newTree(version int) (*tree, error) {
	dir, err := os.MkdirTemp("", "wasmproxy-cgroup-")
	if err != nil {
		return nil, err
	}
	t := &tree{dir: dir, version: version, before: map[string]string{}}
	mode := "v2"
	if version == 1 {
		mode = "v1"
		for _, controller := range []string{"cpu", "memory", "cpuset", "pids"} {
			err = errors.Join(err, os.Mkdir(filepath.Join(dir, controller), 0o755))
		}
	}
	if t.fs, err = cgroup.Open(dir, mode); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return t, nil
}

func (t *tree) close() error { return errors.Join(t.fs.Close(), os.RemoveAll(t.dir)) }

// fill makes the groups of all pods and containers, as a kernel that has every file
// would, and what the event says of them. A container whose files are nil has no group.
func (t *tree) fill(store *pods.Store, files map[string]map[string]string) error {
	var errs []error
	for _, p := range store.Pods() {
		parent := p.Config.GetLinux().GetCgroupParent()
		if group, err := cgroup.PodPath(parent); err == nil {
			errs = append(errs, t.group(group, p.Config.GetLinux().GetResources(), files[p.ID]))
		}
		for _, c := range store.Containers(p.ID) {
			if of, given := files[c.ID]; of != nil || !given {
				errs = append(errs, t.container(c, parent, of))
			}
		}
	}
	return errors.Join(errs...)
}

func (t *tree) container(c pods.Container, parent string, files map[string]string) error {
	if c.CgroupParent != "" {
		parent = c.CgroupParent
	}
	group, err := cgroup.ContainerPath(parent, c.ID)
	if err != nil {
		return nil // nobody can write there; who tries is told so
	}
	return t.group(group, c.Config.GetLinux().GetResources(), files)
}

// group makes the files of a cgroup. The event's own are by their names on v2.
func (t *tree) group(group string, r *runtimeapi.LinuxContainerResources, files map[string]string) error {
	all := t.defaults(r)
	for name, value := range files {
		if t.version == 1 {
			return fmt.Errorf("cgroup file %s of %s: what cgroup files hold can only be given for cgroup v2", name, group)
		}
		all[name] = value
	}
	var errs []error
	for name, value := range all {
		controller, file := "", name
		if t.version == 1 {
			controller, file, _ = strings.Cut(name, "/")
		}
		value = strings.TrimRight(value, "\n") // as it is compared later; the kernel ends a file with one
		path := filepath.Join(controller, strings.TrimPrefix(group, "/"), file)
		if _, made := t.before[path]; made {
			continue
		}
		t.before[path] = value
		errs = append(errs, os.MkdirAll(filepath.Join(t.dir, filepath.Dir(path)), 0o755), os.WriteFile(filepath.Join(t.dir, path), []byte(value+"\n"), 0o644))
	}
	return errors.Join(errs...)
}

// defaults are the files that plugins may write, as the kernel begins with them, and
// those that the runtime writes from the request.
func (t *tree) defaults(r *runtimeapi.LinuxContainerResources) map[string]string {
	period, quota, limit := max(r.GetCpuPeriod(), 0), r.GetCpuQuota(), r.GetMemoryLimitInBytes()
	if period == 0 {
		period = 100000
	}
	if t.version == 1 {
		if quota == 0 {
			quota = -1
		}
		if limit == 0 {
			limit = 1<<63 - 4096
		}
		return map[string]string{
			"cpu/cpu.idle": "0", "cpu/cpu.cfs_burst_us": "0", "cpu/cpu.bvt_warp_ns": "0",
			"cpu/cpu.cfs_quota_us": fmt.Sprint(quota), "cpu/cpu.cfs_period_us": fmt.Sprint(period),
			"cpu/cpu.shares": fmt.Sprint(max(r.GetCpuShares(), 2)), "memory/memory.limit_in_bytes": fmt.Sprint(limit),
		}
	}
	return map[string]string{
		"cpu.idle": "0", "cpu.max.burst": "0", "cpu.bvt_warp_ns": "0", "memory.high": "max", "io.latency": "",
		"cpu.max": orMax(quota) + " " + fmt.Sprint(period), "memory.max": orMax(limit),
		"cpu.weight": fmt.Sprint(1 + (max(r.GetCpuShares(), 2)-2)*9999/262142),
	}
}

func orMax(n int64) string {
	if n <= 0 {
		return "max"
	}
	return fmt.Sprint(n)
}

// writes returns the files that have another content by now, sorted by path.
func (t *tree) writes() (all []Write, err error) {
	err = filepath.WalkDir(t.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(path, t.dir+"/")
		if after := strings.TrimRight(string(b), "\n"); after != t.before[rel] {
			all = append(all, Write{rel, t.before[rel], after})
		}
		return nil
	})
	return all, err
}
