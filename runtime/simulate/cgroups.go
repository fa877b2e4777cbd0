package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// Cgroups is a directory of plain files that looks like a cgroup mount as far as the proxy
// looks at it.
type Cgroups struct {
	Dir     string
	Version int // 1 or 2
}

// NewCgroups makes an empty tree in a directory that exists.
func NewCgroups(dir string, version int) (*Cgroups, error) {
	var errs []error
	if version == 1 {
		for _, controller := range []string{"cpu", "memory", "cpuset", "blkio", "pids", "rdma", "misc"} {
			errs = append(errs, os.Mkdir(filepath.Join(dir, controller), 0o755))
		}
	}
	return &Cgroups{dir, version}, errors.Join(errs...)
}

// Make makes a group as the kernel does, with these resources. It has every file of rules.Files that the version has
// and no field of the resources is for, and of the others cpu.max, cpu.weight and memory.max.
func (c *Cgroups) Make(group string, r *runtimeapi.LinuxContainerResources) error {
	files := map[string]string{
		"cpu.idle": "0", "cpu.max.burst": "0", "cpu.bvt_warp_ns": "0", "cpu.uclamp.min": "0.00", "cpu.uclamp.max": "max",
		"memory.min": "0", "memory.low": "0", "memory.high": "max", "memory.swap.high": "max", "memory.zswap.max": "max", "memory.oom.group": "0",
		"io.weight": "default 100", "io.bfq.weight": "default 100", "io.max": "", "io.latency": "", "io.prio.class": "no-change",
		"pids.max": "max", "rdma.max": "", "misc.max": "",
		"cpu.max": "max 100000", "cpu.weight": "100", "memory.max": "max",
	}
	if c.Version == 1 {
		files = map[string]string{
			"cpu/cpu.idle": "0", "cpu/cpu.cfs_burst_us": "0", "cpu/cpu.bvt_warp_ns": "0", "cpu/cpu.cfs_quota_us": "-1",
			"cpu/cpu.cfs_period_us": "100000", "cpu/cpu.shares": "1024", "memory/memory.limit_in_bytes": fmt.Sprint(1<<63 - 4096),
			"cpu/cpu.uclamp.min": "0.00", "cpu/cpu.uclamp.max": "max", "blkio/blkio.prio.class": "no-change",
			"blkio/blkio.weight": "500", "blkio/blkio.weight_device": "", "blkio/blkio.bfq.weight": "100", "blkio/blkio.bfq.weight_device": "",
			"blkio/blkio.throttle.read_bps_device": "", "blkio/blkio.throttle.write_bps_device": "",
			"blkio/blkio.throttle.read_iops_device": "", "blkio/blkio.throttle.write_iops_device": "",
			"pids/pids.max": "max", "rdma/rdma.max": "", "misc/misc.max": "",
		}
	}
	return errors.Join(c.Write(group, files), c.Update(group, r))
}

// Update writes to a group what runc would write for these resources.
func (c *Cgroups) Update(group string, r *runtimeapi.LinuxContainerResources) error {
	files := map[string]string{}
	put := func(file string, n int64) {
		if n != 0 {
			files[file] = fmt.Sprint(n)
		}
	}
	if c.Version == 1 {
		put("cpu/cpu.cfs_quota_us", r.GetCpuQuota())
		put("cpu/cpu.cfs_period_us", r.GetCpuPeriod())
		put("cpu/cpu.shares", r.GetCpuShares())
		put("memory/memory.limit_in_bytes", r.GetMemoryLimitInBytes())
		return c.Write(group, files)
	}
	if quota, period := r.GetCpuQuota(), r.GetCpuPeriod(); quota != 0 || period != 0 {
		if period == 0 {
			period = 100000
		}
		files["cpu.max"] = fmt.Sprint(orMax(quota), " ", period)
	}
	if shares := r.GetCpuShares(); shares > 0 {
		put("cpu.weight", int64(dialect.Weight(uint64(shares))))
	}
	if limit := r.GetMemoryLimitInBytes(); limit != 0 {
		files["memory.max"] = orMax(limit)
	}
	maps.Copy(files, r.GetUnified())
	return c.Write(group, files)
}

func orMax(n int64) string {
	if n <= 0 {
		return "max"
	}
	return fmt.Sprint(n)
}

// Write writes files of a group, which is made if it is not there. On v1 a name begins with
// the controller's.
func (c *Cgroups) Write(group string, files map[string]string) error {
	var errs []error
	for name, value := range files {
		controller, file := "", name
		if c.Version == 1 {
			controller, file, _ = strings.Cut(name, "/")
		}
		path := filepath.Join(c.Dir, controller, group, filepath.Base(file))
		value = strings.TrimRight(value, "\n") + "\n"
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(value), 0o644))
	}
	return errors.Join(errs...)
}

// Files returns the content of all files, without the last end of line, by their paths
// beneath the mount.
func (c *Cgroups) Files() (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(c.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, c.Dir+"/")] = strings.TrimRight(string(content), "\n")
		return err
	})
	return files, err
}

// Write is a cgroup file that was written, by its path beneath the cgroup mount.
type Write struct {
	Path   string `json:"path"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// String returns the write as a line for people.
func (w Write) String() string { return fmt.Sprintf("~ %s: %s -> %s", w.Path, w.Before, w.After) }

// Writes returns the files that were there before and have another content now, sorted by path.
func Writes(before, after map[string]string) (all []Write) {
	for _, path := range slices.Sorted(maps.Keys(after)) {
		if was, known := before[path]; known && was != after[path] {
			all = append(all, Write{path, was, after[path]})
		}
	}
	return all
}

// tree are the cgroups of an event, in a directory of their own.
type tree struct {
	*Cgroups
	fs     *cgroup.FS
	before map[string]string // the files as the event finds them
}

// makeTree makes the groups of all pods that the event finds, of their QoS classes and of their containers, and of what its
// call makes: runtimes make a cgroup while they answer. They have the files that the event gives them. A container whose
// files are nil has no group.
func (s *Simulator) makeTree() error {
	e := s.event
	dir, err := os.MkdirTemp("", "wasmproxy-cgroup-")
	if err != nil {
		return err
	}
	t := &tree{}
	if t.Cgroups, err = NewCgroups(dir, e.Node.CgroupVersion); err == nil {
		t.fs, err = cgroup.Open(dir, fmt.Sprint("v", e.Node.CgroupVersion))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	s.tree = t

	var errs []error
	if t.Version == 2 {
		errs = append(errs, t.Write("/", e.Files[abi.Node.String()]))
	}
	calls := slices.Clone(e.Before)
	if m := e.Call.Method; m != nil && m.Effect == cri.Makes {
		calls = append(calls, e.Call)
	}
	store := storeOf(calls)
	for _, p := range store.Pods() {
		parent := p.Config.GetLinux().GetCgroupParent()
		class, _ := crifield.Object{Pod: crifield.PodOf(p)}.Text(abi.PodQoS)
		of, err := cgroup.QOSClassPath(parent)
		errs = append(errs, t.add(of, err, nil, e.Files[class]))
		group, err := cgroup.PodPath(parent)
		errs = append(errs, t.add(group, err, cmp.Or(e.PodGroup, p.Config.GetLinux().GetResources()), e.Files[p.ID]))
		for _, c := range store.Containers(p.ID) {
			if of, given := e.Files[c.ID]; of != nil || !given {
				group, _, err := t.fs.FindContainer(cmp.Or(c.CgroupParent, parent), c.ID)
				errs = append(errs, t.add(group, err, c.Config.GetLinux().GetResources(), of))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.before, err = t.Files()
	return err
}

// add makes a group, unless it has no place in the tree: a plugin that writes there gets that
// error.
func (t *tree) add(group string, unplaced error, r *runtimeapi.LinuxContainerResources, files map[string]string) error {
	if unplaced != nil {
		return nil
	}
	err := t.Make(group, r)
	if t.Version == 2 {
		return errors.Join(err, t.Write(group, files))
	}
	for _, limit := range []string{"cpu.max", "memory.max"} { // of others see overlaid.ReadFiles
		if value, ok := files[limit]; ok {
			err = errors.Join(err, t.fs.Write(context.Background(), group, limit, value))
		}
	}
	return err
}
