package systemd

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"time"

	escape "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// IsUnit reports whether a cgroup's path has the name of a unit of systemd: a slice, scope or
// service.
func IsUnit(group string) bool {
	switch path.Ext(group) {
	case ".slice", ".scope", ".service":
		return true
	}
	return false
}

// Kept is a file of a unit's cgroup whose value systemd is to keep.
type Kept struct {
	Group string // its path below the mount
	File  string // its v2 name
}

// Files are those of a unit's cgroup, by the kernel's names.
type Files struct {
	Read  func(name string) string // "" if it cannot be read
	Write func(name, value string) error
	Gone  func() bool // whether there is no such cgroup
	// Before is what Texts returned before the write; nil if that is not known.
	Before map[string]string
}

// Texts reads the kernel's files of which the property of a file is made, by their names.
func (m *Manager) Texts(file string, read func(name string) string) map[string]string {
	all := map[string]string{}
	if p, known := table(m.cgroups)[file]; known {
		p.of(func(name string) string { // some ask several times
			if _, has := all[name]; !has {
				all[name] = read(name)
			}
			return all[name]
		})
	}
	return all
}

// due is what systemd is to keep and does not yet.
type due struct {
	Files
	refused error // why it did not; nil if there was no connection
}

// written is what a write has made of a file of the kernel, of which systemd is to be told.
type written struct {
	text string
	old  []string // what the file had before, and before earlier writes of which systemd was not told
}

// maxOld is how many old values of a file are known: systemd may refuse the property of a file that is written again and again.
const maxOld = 8

// note notes a write of a unit's files. The caller has the lock.
func (m *Manager) note(group string, before, after map[string]string) {
	all := m.written[group]
	if all == nil {
		all = map[string]written{}
		m.written[group] = all
	}
	for name, text := range after {
		old := all[name].old
		if was, known := before[name]; known {
			old = append(old, was)
		}
		all[name] = written{text, old[max(0, len(old)-maxOld):]}
	}
}

// told forgets the write of a file: systemd has been told, or has no property of what the file holds.
func (m *Manager) told(k Kept) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.Texts(k.File, func(string) string { return "" }) {
		delete(m.written[k.Group], name)
	}
	if len(m.written[k.Group]) == 0 {
		delete(m.written, k.Group)
	}
}

// properties are those of what systemd is to keep, made of what the kernel has. If that is an old value, systemd has written it again,
// in a call that it carried out late, or with another property of the unit: the value of the last write counts then.
func (m *Manager) properties(systemdVersion int, k Kept, d *due) []escape.Property {
	return propertiesOf(m.cgroups, systemdVersion, k.File, func(name string) string {
		now := d.Read(name)
		m.mu.Lock()
		defer m.mu.Unlock()
		if w, known := m.written[k.Group][name]; known && slices.Contains(w.old, now) {
			return w.text
		}
		return now
	})
}

// Keep has systemd keep the values that a unit's cgroup has in a file, after it was written,
// and over a reload. Nothing is done for a file that systemd does not know, or of a cgroup that is
// not its unit's; but a value of memory.oom.group is the one that comes back after a call which systemd has yet to answer.
//
// There is no error: the value is in the file, which is as good until the next reload. What
// went wrong is an event, and Retry tries it again. Keep waits for Run's first try to connect. After
// a call that systemd did not answer in time, as while it is being reloaded, Keep leaves what it is
// to do to Retry until systemd answers again: the starts of containers wait for Keep.
func (m *Manager) Keep(ctx context.Context, k Kept, files Files) {
	if k.File == oomGroup {
		m.mu.Lock()
		defer m.mu.Unlock()
		if _, open := m.oomGroups[k.Group]; open {
			m.oomGroups[k.Group] = files.Read(oomGroup)
		}
		return
	}
	if _, known := table(m.cgroups)[k.File]; !known {
		return
	}
	d := due{Files: files}
	has := m.Texts(k.File, files.Read) // at once: for another call, systemd may overwrite the file
	ready := true
	select {
	case <-m.tried:
	case <-time.After(callTime):
		ready = false
	}
	m.mu.Lock()
	conn, systemdVersion, lastErr := m.conn, m.version, m.lastErr
	m.note(k.Group, files.Before, has)
	delete(m.due, k)
	along := m.dueOf(k.Group)
	m.mu.Unlock()
	if !ready {
		m.postpone(k, d)
		return
	}
	if conn == nil {
		m.unavailable(lastErr)
		m.postpone(k, d)
		return
	}
	properties := propertiesOf(m.cgroups, systemdVersion, k.File, func(name string) string { return has[name] })
	if len(properties) == 0 {
		m.told(k)
		return
	}
	for file, d := range along { // these are overwritten with what systemd had before, unless they go along
		properties = append(m.properties(systemdVersion, Kept{k.Group, file}, d), properties...)
	}
	m.setting.Lock() // this wait is no part of the call's time: those who wait hear of a systemd that does not answer from the first
	defer m.setting.Unlock()
	m.mu.Lock()
	silent := m.silent
	m.mu.Unlock()
	if silent {
		m.postpone(k, d)
		return
	}
	m.set(ctx, conn, k, d, properties)
}

// dueOf is what is due of a unit, by file, without what systemd has answered that it refuses. The caller has the lock.
func (m *Manager) dueOf(group string) map[string]*due {
	all := map[string]*due{}
	for k, d := range m.due {
		answered := errors.As(d.refused, new(dbus.Error))
		if k.Group == group && !answered {
			all[k.File] = d
		}
	}
	return all
}

// Retry has systemd keep what it was to keep and does not yet: there was no connection, or
// systemd refused. It ends early if systemd does not answer. Without a
// connection, it forgets units that have gone.
func (m *Manager) Retry(ctx context.Context) {
	m.mu.Lock()
	all, conn, systemdVersion := maps.Clone(m.due), m.conn, m.version
	if conn == nil {
		maps.DeleteFunc(m.due, func(k Kept, d *due) bool {
			gone := d.Gone()
			if gone {
				delete(m.oomGroups, k.Group)
				delete(m.written, k.Group)
			}
			return gone
		})
	}
	m.mu.Unlock()
	if conn == nil {
		return
	}
	held := make(map[Kept][]escape.Property, len(all))
	for k, d := range all { // first all of them: with a property, systemd writes other files of the unit, too
		held[k] = m.properties(systemdVersion, k, d)
	}
	answers := true
	for k, d := range all {
		if !answers {
			return
		}
		m.setting.Lock()
		m.mu.Lock()
		still := m.due[k] == d // else the file was written meanwhile, and Keep sees to it
		if still {
			delete(m.due, k)
		}
		m.mu.Unlock()
		if still {
			answers = m.set(ctx, conn, k, *d, held[k])
		}
		m.setting.Unlock()
	}
}

// oomGroup is a file of cgroup v2 that no property is of. kubelet has runc set it to 1 for containers. With a
// property of whatever controller systemd writes it, too, by the unit's OOMPolicy=, which makes it 0.
const oomGroup = "memory.oom.group"

// set sets properties of a unit, and brings back what systemd overwrites with them. It makes one event of the
// same refusal, and has it tried again. It reports whether systemd has answered in time. The caller holds Manager.setting.
func (m *Manager) set(ctx context.Context, conn *dbus.Conn, k Kept, d due, properties []escape.Property) (answers bool) {
	if len(properties) == 0 { // as of a group that has gone
		m.told(k)
		return ctx.Err() == nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	before := ""
	if m.cgroups == 2 {
		m.mu.Lock()
		before = m.oomGroups[k.Group]
		m.mu.Unlock()
		before = cmp.Or(before, d.Read(oomGroup))
	}
	err := setProperties(ctx, conn, k.Group, properties)
	if before != "" {
		// systemd answers a ping after it has written the files of a property that it was sent before.
		_ = conn.Object(service, object).CallWithContext(ctx, "org.freedesktop.DBus.Peer.Ping", 0).Err // without an answer, it may have
		if now := d.Read(oomGroup); now != "" && now != before {
			_ = d.Write(oomGroup, before) // fails where the group has gone
		}
	}
	m.mu.Lock()
	answers = ctx.Err() == nil
	m.silent = !answers
	if delete(m.oomGroups, k.Group); m.silent && before != "" {
		m.oomGroups[k.Group] = before
	}
	m.mu.Unlock()
	if err == nil {
		m.told(k)
		return answers
	}
	news := d.refused == nil || d.refused.Error() != err.Error()
	if news && conn.Connected() && m.events.Refused != nil { // else Run reports that the connection has ended
		m.events.Refused(path.Base(k.Group), properties[len(properties)-1].Name, err)
	}
	d.refused = err
	m.postpone(k, d)
	return answers
}

func (m *Manager) postpone(k Kept, d due) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.due[k] = &d
}

// setProperties sets properties of the unit that has the cgroup. One that has gone, or has
// another cgroup, is no error: naming it in SetUnitProperties would make systemd load it.
func setProperties(ctx context.Context, conn *dbus.Conn, group string, properties []escape.Property) error {
	var found dbus.ObjectPath
	err := conn.Object(service, object).CallWithContext(ctx, manager+".GetUnitByControlGroup", 0, group).Store(&found)
	if gone(err) || err == nil && found != object+"/unit/"+dbus.ObjectPath(escape.PathBusEscape(path.Base(group))) {
		return nil
	}
	if err == nil {
		err = conn.Object(service, found).CallWithContext(ctx, unit+".SetProperties", 0, true, properties).Err
	}
	if gone(err) {
		return nil
	}
	return err
}

// gone reports whether an error says that there is no such unit.
func gone(err error) bool {
	var e dbus.Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Name == service+".NoSuchUnit" || e.Name == "org.freedesktop.DBus.Error.UnknownObject"
}
