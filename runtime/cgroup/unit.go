package cgroup

import (
	"context"
	"path"
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

// keeping has systemd keep what a write leaves in a file. After the write the kernel has taken the value, so that there is no other
// error for the caller.
func (g *Group) keeping(ctx context.Context, x *rules.File, write func() error) error {
	f := g.fs
	if f.systemd == nil || !systemd.IsUnit(g.rel) {
		return write()
	}
	files := f.filesOf(g.rel)
	files.Before = f.systemd.Texts(x.Name, files.Read)
	if err := write(); err != nil {
		return err
	}
	// systemd has the path from the hierarchy's top, also if the mount shows a part of it. Seen from a
	// cgroup namespace below the mount's top, that is the hierarchy's.
	full := "/" + g.rel
	if !strings.Contains(f.shown, "..") {
		full = path.Join(f.shown, full)
	}
	f.systemd.Keep(ctx, systemd.Kept{Group: full, File: x.Name}, files)
	return nil
}

// filesOf opens the group for each use: systemd may be sent a value later.
func (f *FS) filesOf(rel string) systemd.Files {
	return systemd.Files{
		Read: func(name string) string {
			g := f.Group(rel)
			defer g.Close()
			text, _ := g.readFile(name, "")
			return text
		},
		Write: func(name, value string) error {
			g := f.Group(rel)
			defer g.Close()
			return g.writeFile(name, "", value)
		},
		Gone: func() bool { return f.Gone(rel) },
	}
}

// Rounded returns the value that Write gives a file for one that [rules.Set.Parse] has
// returned: of a systemd unit, systemd rounds a quota. The period is the group's if the value
// names none.
func (g *Group) Rounded(file, value string) string {
	limit := rules.ParseLimit(file, value)
	if file != rules.CPUMax || limit.Amount <= 0 || !systemd.IsUnit(g.rel) {
		return value
	}
	if !strings.Contains(value, " ") {
		held, err := g.Read(file)
		if err != nil {
			return value // the write fails, too
		}
		limit.Period = rules.ParseLimit(file, held).Period
	}
	quota, period := systemd.RoundQuota(uint64(limit.Amount), uint64(limit.Period))
	return rules.Limit{Amount: int64(quota), Period: int64(period)}.Text(file)
}
