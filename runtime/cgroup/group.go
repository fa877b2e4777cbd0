package cgroup

import (
	"cmp"
	"errors"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// Group is one cgroup, for several uses in a row: each directory and file of it is opened once,
// when it is used first, and read anew each time. That the group is removed meanwhile shows in
// each use. It belongs to one goroutine, which closes it soon.
type Group struct {
	fs    *FS
	path  string         // as the caller gave it
	rel   string         // clean
	wrong error          // why the path names no group that may be used
	open  map[string]int // directories, by controller, and files that are open for reading, by the kernel's name
}

// inner is the key of the group for processes in the scope of a container, of a runtime that makes one.
const inner = "inner"

// Group returns a group, which need not exist. A path that names none, see [PodPath], is an error of
// each use. The caller closes it.
func (f *FS) Group(path string) *Group {
	rel, err := clean(path)
	return &Group{fs: f, path: path, rel: rel, wrong: err, open: map[string]int{}}
}

// Node returns the root group, whose files tell of the whole node. Nothing may be written there. The caller closes it.
func (f *FS) Node() *Group {
	return &Group{fs: f, path: "/", rel: ".", open: map[string]int{}}
}

// Path is what Group was given.
func (g *Group) Path() string { return g.path }

// Version is that of the FS.
func (g *Group) Version() int { return g.fs.Version() }

// Close releases what is open. Nothing was written through it that Close could lose. A nil Group has
// nothing open.
func (g *Group) Close() {
	if g == nil {
		return
	}
	for _, fd := range g.open {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
	clear(g.open)
}

// find returns a file of the tables, if this version of cgroups has it.
func (g *Group) find(file string) (*rules.File, error) {
	x, err := rules.Lookup(file)
	if err != nil {
		return nil, err
	}
	return x, cmp.Or(g.wrong, x.In(g.fs.version))
}

// within opens the directory of the inner group; -1 if there is none.
func (g *Group) within() (fd int) {
	if fd, looked := g.open[inner]; looked {
		return fd
	}
	fd = -1
	if g.fs.version == 2 && strings.HasSuffix(g.rel, scope) {
		for _, name := range dialect.Union(func(r dialect.Runtime) []string { return []string{r.Inner} }) {
			if opened, err := openBeneath(g.fs.dirs[whole], path.Join(g.rel, name)); err == nil {
				fd = opened
				break
			}
		}
	}
	g.open[inner] = fd
	return fd
}

// openFile opens a file of the group. needs says which kernel has it. The caller closes it.
func (g *Group) openFile(name, needs string, flag int) (fd int, err error) {
	controller, _, _ := strings.Cut(name, ".") // v1 mounts the file there
	key := controller
	if g.fs.version == 2 {
		key = whole
	}
	top, mounted := g.fs.dirs[key]
	dir, opened := g.open[key]
	switch {
	case !mounted:
		return -1, rules.Reason(abi.Unsupported, "the %s controller is not mounted", controller)
	case !opened:
		if dir, err = openBeneath(top, g.rel); err != nil {
			return -1, err
		}
		g.open[key] = dir
	}
	fd, err = openAt(dir, name, flag)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	still, gone := openBeneath(top, g.rel)
	if gone != nil {
		return -1, err
	}
	_ = unix.Close(still)
	// The kernel makes the files of a controller only in groups for which the controller is on.
	if needs == "" {
		return -1, rules.Reason(abi.Unsupported, "this kernel has no %s for this cgroup; the %s controller may be off", name, controller)
	}
	const lacks = "this kernel has no %s for this cgroup; it needs %s, and the %s controller"
	return -1, rules.Reason(abi.Unsupported, lacks, name, needs, controller)
}

// openAt opens a file of a directory; the error is EBADF without one.
func openAt(dir int, name string, flag int) (fd int, err error) {
	return again(func() (int, error) { return unix.Openat(dir, name, flag|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0) })
}

// reader is open for reading. Close closes it.
func (g *Group) reader(name, needs string) (fd int, err error) {
	if fd, opened := g.open[name]; opened {
		return fd, nil
	}
	within := -1
	if weighs := strings.Contains(name, "weight") || name == rules.CPUIdle; !weighs { // those of the scope count among containers
		within = g.within()
	}
	if fd, err = openAt(within, name, unix.O_RDONLY); err != nil {
		fd, err = g.openFile(name, needs, unix.O_RDONLY)
	}
	if err == nil {
		g.open[name] = fd
	}
	return fd, err
}
