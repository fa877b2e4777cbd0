package systemd

import (
	"context"
	"errors"
	"path"

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

// Keep has systemd keep the values that a unit's cgroup has in a file, after it was written,
// and over a reload. version is that of cgroups, group the path below the mount, and file the
// v2 name of the file; read returns what a file of the group holds, by the kernel's name. Nothing is done for
// a file that systemd does not know, or of a cgroup that is not its unit's.
//
// There is no error: the value is in the file, which is as good until the next reload. What
// went wrong is an event. Keep waits for Run's first try to connect.
func (m *Manager) Keep(ctx context.Context, version int, group, file string, read func(name string) (string, error)) {
	if !known(version, file) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	select {
	case <-m.tried:
	case <-ctx.Done():
		return
	}
	m.mu.Lock()
	conn, systemdVersion, lastErr := m.conn, m.version, m.lastErr
	m.mu.Unlock()
	if conn == nil {
		m.unavailable(lastErr)
		return
	}
	properties := propertiesOf(version, systemdVersion, file, read)
	if len(properties) == 0 {
		return
	}
	if err := setProperties(ctx, conn, group, properties); err != nil && m.events.Refused != nil {
		m.events.Refused(path.Base(group), properties[len(properties)-1].Name, err)
	}
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
