package systemd

import (
	"context"

	"github.com/godbus/dbus/v5"
)

// oomGroup is a file of a unit's cgroup that no property is of. kubelet has runc set it to 1 for containers. With a
// property of whatever controller systemd writes it, too, by the unit's OOMPolicy=, which makes it 0.
const oomGroup = "memory.oom.group"

// setting is of a unit whose properties are being set.
type setting struct {
	held  string // of memory.oom.group before the first of the calls
	calls int
}

// enter returns what the unit's memory.oom.group held before the first of the calls that set
// properties of it now: the others may find what systemd has written. It is "" on cgroup v1.
func (m *Manager) enter(group string, d due) (held string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.setting[group]
	if s == nil {
		s = &setting{held: d.oomGroup()}
		m.setting[group] = s
	}
	s.calls++
	return s.held
}

func (m *Manager) leave(group string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.setting[group]; s.calls > 1 {
		s.calls--
	} else {
		delete(m.setting, group)
	}
}

func (d due) oomGroup() string {
	if d.version == 1 {
		return ""
	}
	held, _ := d.Read(oomGroup) // fails where the group has gone
	return held
}

// restoreOOMGroup writes the file again if it does not hold this any more. systemd answers a ping after
// it has written the files of a property that it was sent before.
func (d due) restoreOOMGroup(ctx context.Context, conn *dbus.Conn, held string) {
	if held == "" {
		return
	}
	_ = conn.Object(service, object).CallWithContext(ctx, "org.freedesktop.DBus.Peer.Ping", 0).Err // without an answer, it may have
	if now := d.oomGroup(); now != "" && now != held {
		_ = d.Write(oomGroup, held) // fails where the group has gone
	}
}
