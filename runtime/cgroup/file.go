package cgroup

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// maxRead bounds what is read of one file, in bytes. io.latency has a line for
// each device.
const maxRead = 64 << 10

// Read returns what the group's file holds, without the final newline. The file
// goes by its v2 name. During an update (see SuspendForUpdate), it is the value
// that will be put back. The error's code is abi.NotFound if the group is not
// there, abi.Unsupported if this cgroup version or kernel has no such file.
func (f *FS) Read(group, file string) (string, error) {
	x, rel, err := f.find(group, file)
	if err != nil {
		return "", rules.Fail("read", group, file, "", err)
	}
	g := f.enter(rel)
	defer f.leave(rel, g)
	if v, ok := g.kept[file]; ok && g.updates > 0 {
		return v, nil
	}
	v, err := f.get(rel, x)
	if err != nil {
		return "", rules.Fail("read", group, file, "", err)
	}
	return v, nil
}

// Write parses the value as [rules.Set.Parse] does and writes it to the group's file, named
// as in v2: one of those that cgroup_set writes. The codes of its error are those of Parse
// and Read; a value that the kernel refuses is abi.Invalid, such as a burst above the quota.
//
// A file of a systemd unit gets a quota as systemd would round it, and what systemd knows it
// is told, so that a reload keeps it: see [FS.UseSystemd]. ctx bounds that alone.
//
// While an update of the group is held back, cpu.idle and cpu.max.burst are
// only noted. They are written when the last such update ends, the burst then no
// larger than the quota. To end cpu.idle, an update is the right moment: the kernel
// gives a group that stops being idle its default share, and the one that CRI
// asked for only returns with the update.
func (f *FS) Write(ctx context.Context, group, file, value string) error {
	x, rel, err := f.find(group, file)
	if err != nil {
		return rules.Fail("write", group, file, value, err)
	}
	v, err := x.Parse(value)
	if err != nil {
		return rules.Fail("write", group, file, value, err)
	}
	if suspendable(file) {
		err = f.writeSuspendable(ctx, rel, x, v)
	} else {
		err = f.set(ctx, rel, x, v)
	}
	if err != nil {
		return rules.Fail("write", group, file, value, err)
	}
	return nil
}

func (f *FS) find(group, file string) (*rules.File, string, error) {
	x, err := rules.Lookup(file)
	if err != nil {
		return nil, "", err
	}
	rel, err := clean(group)
	return x, rel, err
}

// get returns what a file of the table holds, in v2's form.
func (f *FS) get(rel string, x *rules.File) (string, error) {
	if f.version == 2 {
		v, err := f.readFile(rel, "", x.Name, x.Needs)
		return x.Read(v), err
	}
	held, err := f.held(rel, x)
	if err != nil {
		return "", err
	}
	return x.V1.Read(held)
}

// set writes a value that is to stay: see put and keep.
func (f *FS) set(ctx context.Context, rel string, x *rules.File, value string) error {
	err := f.put(rel, x, f.Rounded("/"+rel, x.Name, value))
	if err == nil {
		f.keep(ctx, rel, x)
	}
	return err
}

// put writes a value that the table's parser returned to the files alone.
func (f *FS) put(rel string, x *rules.File, value string) error {
	if f.version == 2 {
		return f.writeFile(rel, "", x.Name, x.Needs, value)
	}
	return f.put1(rel, x, value)
}

func (f *FS) readFile(rel, controller, name, needs string) (string, error) {
	h, err := f.open(rel, controller, name, needs, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer h.Close()
	b, err := io.ReadAll(io.LimitReader(h, maxRead))
	return strings.TrimRight(string(b), "\n"), bare(err)
}

func (f *FS) writeFile(rel, controller, name, needs, value string) error {
	// Truncating means nothing to the kernel's files, and keeps plain ones right.
	h, err := f.open(rel, controller, name, needs, os.O_WRONLY|os.O_TRUNC)
	if err != nil {
		return err
	}
	for line := range strings.SplitAfterSeq(value, "\n") { // the kernel takes one at a time
		if _, err = h.WriteString(line); err != nil {
			break
		}
	}
	if closeErr := h.Close(); err == nil {
		err = closeErr
	}
	return bare(err)
}

// open opens a file of a group. needs says which kernel has it.
func (f *FS) open(rel, controller, name, needs string, flag int) (*os.File, error) {
	dir, ok := f.dirs[controller]
	if !ok {
		return nil, rules.Reason(abi.Unsupported, "the %s controller is not mounted", controller)
	}
	h, err := dir.OpenFile(path.Join(rel, name), flag, 0)
	if !errors.Is(err, fs.ErrNotExist) {
		return h, bare(err)
	}
	if _, statErr := dir.Stat(rel); statErr == nil {
		return nil, lacking(name, needs)
	}
	return nil, bare(err)
}

// lacking is why a group has no file of this name. The kernel makes the files of a controller
// only in groups for which the controller is on.
func lacking(name, needs string) error {
	controller, _, _ := strings.Cut(name, ".")
	if needs == "" {
		return rules.Reason(abi.Unsupported, "this kernel has no %s for this cgroup; the %s controller may be off", name, controller)
	}
	return rules.Reason(abi.Unsupported, "this kernel has no %s for this cgroup; it needs %s, and the %s controller", name, needs, controller)
}

// bare drops the path from an error: Error names the group and the file.
func bare(err error) error {
	if e, ok := err.(*fs.PathError); ok {
		return e.Err
	}
	return err
}
