package cgroup

import (
	"context"
	"path"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/systemd"
)

// UseSystemd has m keep what is written to files of systemd's units; a tree of plain files has
// none. Call it before f is used; m runs as long as f is used.
func (f *FS) UseSystemd(m *systemd.Manager) {
	if f.mounted {
		f.systemd = m
	}
}

// keep has systemd keep what a file holds now. The kernel has taken the value, so that there
// is no error for the caller.
func (g *Group) keep(ctx context.Context, x *rules.File) {
	if f := g.fs; f.systemd != nil && systemd.IsUnit(g.rel) {
		f.systemd.Keep(ctx, f.version, systemd.Kept{Group: f.full(g.rel), File: x.Name}, f.filesOf(g.rel))
	}
}

// filesOf opens the group for each use: systemd may be sent a value later.
func (f *FS) filesOf(rel string) systemd.Files {
	return systemd.Files{
		Read: func(name string) (string, error) {
			g := f.at(rel)
			defer g.Close()
			return g.raw(name)
		},
		Write: func(name, value string) error {
			g := f.at(rel)
			defer g.Close()
			return g.writeFile("", name, "", value)
		},
	}
}

// full returns a group's path as systemd has it, which is from the hierarchy's top also if
// the mount shows a part of it. Seen from a cgroup namespace below the mount's top, that is
// the hierarchy's.
func (f *FS) full(rel string) string {
	if strings.Contains(f.shown, "..") {
		return "/" + rel
	}
	return path.Join(f.shown, "/", rel)
}

// raw reads a file by the kernel's name, which begins with its controller.
func (g *Group) raw(name string) (string, error) {
	controller := ""
	if g.fs.version == 1 {
		controller, _, _ = strings.Cut(name, ".")
	}
	return g.readFile(controller, name, "")
}

// Rounded returns the value that Write gives a file for one that [rules.Set.Parse] has
// returned: of a systemd unit, systemd rounds a quota. The period is the group's if the value
// names none.
func (g *Group) Rounded(file, value string) string {
	if file != rules.CPUMax || !systemd.IsUnit(g.rel) {
		return value
	}
	quota, period, _ := strings.Cut(value, " ")
	if period == "" {
		held, err := g.Get(file)
		if err != nil {
			return value // the write fails, too
		}
		_, period, _ = strings.Cut(held, " ")
	}
	q, err := strconv.ParseUint(quota, 10, 64)
	p, errPeriod := strconv.ParseUint(period, 10, 64)
	if err != nil || errPeriod != nil {
		return value
	}
	q, p = systemd.RoundQuota(q, p)
	return strconv.FormatUint(q, 10) + " " + strconv.FormatUint(p, 10)
}
