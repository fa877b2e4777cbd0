package cgroup

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// maxRead bounds what is read of one file, in bytes. io.latency has a line for
// each device.
const maxRead = 64 << 10

// Read returns what the group's file holds, without the final newline: one of those that Write
// takes, or of those that tell what the group uses. The file goes by its v2 name, and on v1 the text
// is as v2 would put it. At most 64 KiB are read. During an update (see SuspendForUpdate), it is the
// value that will be put back. The error's code is abi.NotFound if the group is not there,
// abi.Unsupported if this cgroup version or kernel has no such file, and abi.Denied for a file that is
// not in the tables.
func (g *Group) Read(file string) (string, error) {
	x, err := g.find(file)
	if err == nil && slices.Contains(suspendedFiles, file) {
		use := g.fs.enter(g.rel)
		defer g.fs.leave(g.rel, use)
		if v, ok := use.kept[file]; ok && use.updates > 0 {
			return v, nil
		}
	}
	value := ""
	if err == nil {
		value, err = g.get(x)
	}
	if err != nil {
		return "", rules.Fail("read", g.path, file, "", err)
	}
	return value, nil
}

// Read is [Group.Read] of one file.
func (f *FS) Read(group, file string) (string, error) {
	g := f.Group(group)
	defer g.Close()
	return g.Read(file)
}

// Write parses the value as [rules.Set.Parse] does and writes it to the group's file, named
// as in v2: one of those that cgroup_set writes. The codes of its error are those of Parse
// and Read; a value that the kernel refuses is abi.Invalid, such as a burst above the quota.
//
// A file of a systemd unit gets a quota as systemd would round it, and what systemd knows it
// is told, so that a reload keeps it: see [FS.UseSystemd]. ctx bounds that alone. The kernel
// refuses a quota below the burst, so that the burst is cut to a smaller quota first.
//
// While an update of the group is held back, cpu.idle and cpu.max.burst are
// only noted. They are written when the last such update ends, the burst then no
// larger than the quota. To end cpu.idle, an update is the right moment: the kernel
// gives a group that stops being idle its default share, and the one that CRI
// asked for only returns with the update.
func (g *Group) Write(ctx context.Context, file, value string) error {
	x, err := g.find(file)
	v := ""
	if err == nil {
		v, err = x.Parse(value)
	}
	switch {
	case err != nil:
	case slices.Contains(suspendedFiles, file):
		err = g.writeSuspendable(ctx, x, v)
	default:
		err = g.set(ctx, x, v)
	}
	return rules.Fail("write", g.path, file, value, err)
}

// Write is [Group.Write] of one file.
func (f *FS) Write(ctx context.Context, group, file, value string) error {
	g := f.Group(group)
	defer g.Close()
	return g.Write(ctx, file, value)
}

// get returns what a file of the table holds, in v2's form.
func (g *Group) get(x *rules.File) (string, error) {
	if g.fs.version == 2 {
		v, err := g.readFile(x.Name, x.Needs)
		return x.Read(v), err
	}
	held, err := g.held(x)
	if err != nil {
		return "", err
	}
	return x.V1.Read(held)
}

// set writes a value that is to stay: see put and keeping. A burst above a new quota is cut to it.
func (g *Group) set(ctx context.Context, x *rules.File, value string) error {
	value = g.Rounded(x.Name, value)
	put := g.put
	if x.Name == rules.CPUMax {
		put = g.putQuota
	}
	return g.keeping(ctx, x, func() error { return put(x, value) })
}

// putQuota is put of cpu.max. The kernel refuses a quota below the burst, which is cut to it first, and
// comes back if the quota is refused all the same. The group is locked, since an update may suspend the
// burst just then.
func (g *Group) putQuota(x *rules.File, value string) error {
	use := g.fs.enter(g.rel)
	defer g.fs.leave(g.rel, use)
	burst := rules.Find(rules.CPUBurst)
	held, _ := g.get(burst) // "" is no number, and not cut
	cut := rules.FitBurst(held, value)
	if cut != held {
		_ = g.put(burst, cut) // what fails shows in the write of the quota
	}
	err := g.put(x, value)
	if err != nil && cut != held {
		err = errors.Join(err, g.put(burst, held))
	}
	return err
}

// put writes a value that the table's parser returned to the files alone. If one of several of cgroup v1
// refuses it, those before it get back what they held.
func (g *Group) put(x *rules.File, value string) (err error) {
	if g.fs.version == 2 {
		return g.writeFile(x.Name, x.Needs, value)
	}
	var held rules.Held
	if len(x.V1.Names) > 1 {
		held, err = g.held(x)
	}
	if err != nil {
		return err
	}
	writes, err := x.V1.Writes(value, held)
	if err != nil {
		return err
	}
	for i, w := range writes {
		err := g.writeFile(w.Name, x.V1.Needs, w.Value)
		if err == nil {
			continue
		}
		for _, done := range slices.Backward(writes[:i]) {
			err = errors.Join(err, g.writeFile(done.Name, x.V1.Needs, done.Undo))
		}
		return err
	}
	return nil
}

// held reads files by which cgroup v1 has a file of v2. One that is optional and that the node lacks is
// left out.
func (g *Group) held(x *rules.File) (rules.Held, error) {
	held := make(rules.Held, len(x.V1.Names))
	for _, name := range x.V1.Names {
		value, err := g.readFile(name, x.V1.Needs)
		switch lacks := err != nil && rules.CodeOf(err) == abi.Unsupported; {
		case err == nil:
			held[name] = value
		case !lacks || !slices.Contains(x.V1.Optional, name):
			return nil, err
		}
	}
	return held, nil
}

// readFile reads a file by the kernel's name. needs says which kernel has it.
func (g *Group) readFile(name, needs string) (string, error) {
	fd, err := g.reader(name, needs)
	if err != nil {
		return "", err
	}
	buffer, _ := g.fs.buffers.Get().(*[maxRead]byte)
	if buffer == nil {
		buffer = new([maxRead]byte)
	}
	defer g.fs.buffers.Put(buffer)
	text, err := readAll(fd, buffer[:])
	return string(bytes.TrimRight(text, "\n")), err
}

// lastRead is how many bytes a read returns that is not the last one of its file. The kernel
// fills at least a page of 4 KiB with whole records, and none of these files has a record of
// half of that.
const lastRead = 2048

// readAll reads a file from its beginning until its end, or until the buffer is full. It makes
// one system call for a short file: another one that returns nothing would cost as much.
func readAll(fd int, buffer []byte) (text []byte, err error) {
	for n := 0; ; {
		got, err := again(func() (int, error) { return unix.Pread(fd, buffer[n:], int64(n)) })
		if err != nil {
			return nil, err
		}
		if n += got; got < lastRead || n == len(buffer) {
			return buffer[:n], nil
		}
	}
}

// writeFile writes a file by the kernel's name, and that of the inner group, if there is one.
func (g *Group) writeFile(name, needs, value string) error {
	const flags = unix.O_WRONLY | unix.O_TRUNC // truncating means nothing to the kernel's files, and keeps plain ones right
	fd, err := g.openFile(name, needs, flags)
	if err == nil {
		err = writeLines(fd, value)
	}
	if err == nil && g.within() >= 0 {
		fd, err = openAt(g.within(), name, flags)
		switch {
		case errors.Is(err, unix.ENOENT): // the controller is off there
			return nil
		case err == nil:
			err = writeLines(fd, value)
		}
	}
	return err
}

// writeLines writes lines to a file, one at a time as the kernel takes them, and closes it. A line is
// one system call: to the kernel, a second one would be another value.
func writeLines(fd int, value string) (err error) {
	for line := range strings.SplitAfterSeq(value, "\n") {
		n, writeErr := again(func() (int, error) { return unix.Write(fd, []byte(line)) })
		if err = writeErr; err == nil && n < len(line) {
			err = io.ErrShortWrite
		}
		if err != nil {
			break
		}
	}
	if closeErr := unix.Close(fd); err == nil {
		err = closeErr
	}
	return err
}
