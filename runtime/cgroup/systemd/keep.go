package systemd

import (
	"context"
	"errors"
	"maps"
	"math"
	"path"
	"reflect"

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
	Read  func(name string) (string, error)
	Write func(name, value string) error
}

// due is what systemd is to keep and does not yet.
type due struct {
	Files
	version int   // of cgroups
	refused error // why it did not; nil if there was no connection
}

// Keep has systemd keep the values that a unit's cgroup has in a file, after it was written,
// and over a reload. version is that of cgroups. Nothing is done for a file that systemd does not know, or of a cgroup that is
// not its unit's.
//
// There is no error: the value is in the file, which is as good until the next reload. What
// went wrong is an event, and Retry tries it again. Keep waits for Run's first try to connect. After
// a call that systemd did not answer in time, as while it is being reloaded, Keep leaves what it is
// to do to Retry until systemd answers again: the starts of containers wait for Keep.
func (m *Manager) Keep(ctx context.Context, version int, k Kept, files Files) {
	if !known(version, k.File) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	select {
	case <-m.tried:
		m.keep(ctx, k, due{Files: files, version: version})
	case <-ctx.Done():
		m.postpone(k, due{Files: files, version: version})
	}
}

// Retry has systemd keep what it was to keep and does not yet: there was no connection, or
// systemd refused. It ends early if systemd does not answer.
func (m *Manager) Retry(ctx context.Context) {
	m.mu.Lock()
	all, conn, systemdVersion := maps.Clone(m.due), m.conn, m.version
	if conn == nil {
		m.mu.Unlock()
		return
	}
	m.mu.Unlock()
	held := make(map[Kept][]escape.Property, len(all))
	for k, d := range all { // first all of them: with a property, systemd writes other files of the unit, too
		held[k] = d.properties(systemdVersion, k.File)
	}
	answers := true
	for k, d := range all {
		if !answers {
			return
		}
		if !m.take(k, d) { // the file was written meanwhile, and Keep has seen to it
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, callTime)
		m.set(ctx, conn, systemdVersion, k, *d, held[k])
		answers = ctx.Err() == nil
		cancel()
	}
}

// take takes d from what is due. It reports false if d is not due any more.
func (m *Manager) take(k Kept, d *due) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.due[k] != d {
		return false
	}
	delete(m.due, k)
	return true
}

func (d due) properties(systemdVersion int, file string) []escape.Property {
	return propertiesOf(d.version, systemdVersion, file, d.Read)
}

// keep sets the properties that say what the file holds, or notes that they are due.
func (m *Manager) keep(ctx context.Context, k Kept, d due) {
	m.mu.Lock()
	conn, systemdVersion, lastErr, silent := m.conn, m.version, m.lastErr, m.silent
	delete(m.due, k)
	m.mu.Unlock()
	if conn == nil {
		m.unavailable(lastErr)
	}
	if conn == nil || silent {
		m.postpone(k, d)
		return
	}
	m.set(ctx, conn, systemdVersion, k, d, d.properties(systemdVersion, k.File))
}

// set sets properties until they say what the file holds: whoever writes it meanwhile keeps the new
// value, but maybe before this call sets the old one.
func (m *Manager) set(ctx context.Context, conn *dbus.Conn, systemdVersion int, k Kept, d due, properties []escape.Property) {
	if len(properties) == 0 {
		return
	}
	held := m.enter(k.Group, d)
	defer m.leave(k.Group)
	for len(properties) > 0 {
		err := setProperties(ctx, conn, k.Group, properties)
		d.restoreOOMGroup(ctx, conn, held)
		m.mu.Lock()
		m.silent = ctx.Err() != nil
		m.mu.Unlock()
		if err != nil {
			m.refuse(k, d, properties[len(properties)-1].Name, err)
			return
		}
		done := properties
		if properties = d.properties(systemdVersion, k.File); reflect.DeepEqual(done, properties) {
			return
		}
	}
}

// refuse makes one event of the same refusal, and has it tried again.
func (m *Manager) refuse(k Kept, d due, property string, err error) {
	if news := d.refused == nil || d.refused.Error() != err.Error(); news && m.events.Refused != nil {
		m.events.Refused(path.Base(k.Group), property, err)
	}
	d.refused = err
	m.postpone(k, d)
}

// postpone notes what is due. Without a connection that includes units which have gone, so that it
// looks for them now and then.
func (m *Manager) postpone(k Kept, d due) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.due[k] = &d
	if len(m.due) > m.maxDue {
		maps.DeleteFunc(m.due, func(k Kept, d *due) bool { return !d.readable(k.File) })
		m.maxDue = 2*len(m.due) + minDue
	}
}

// readable reports whether there is a file of those that make the properties.
func (d due) readable(file string) (any bool) {
	propertiesOf(d.version, math.MaxInt, file, func(name string) (string, error) {
		text, err := d.Read(name)
		any = any || err == nil
		return text, err
	})
	return any
}

// minDue is how much may be due before units that have gone are looked for.
const minDue = 1000

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
