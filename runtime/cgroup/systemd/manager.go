// Package systemd tells the node's systemd of values in cgroup files of its units, so that it
// keeps them when it is reloaded, and reports when it was. It speaks to systemd's manager over
// D-Bus and opens no cgroup file.
//
// The kernel comes first: a value that it has taken becomes a runtime property of the unit, as
// runc and kubelet set them. systemd itself would only log what the kernel refuses.
package systemd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	service = "org.freedesktop.systemd1"
	object  = dbus.ObjectPath("/org/freedesktop/systemd1")
	manager = service + ".Manager"
	unit    = service + ".Unit"

	// callTime ends a call to systemd. A reload takes it some seconds on a node with many
	// units, and what it was not told meanwhile is tried again: see Retry.
	callTime = 2 * time.Second
	minRetry = time.Second
	maxRetry = time.Minute
)

// Address is where systemd can be reached.
type Address struct {
	DBus   string // as in the D-Bus specification, such as unix:path=/run/systemd/private
	Direct bool   // systemd itself answers there, and not a message bus
}

// Addresses returns those of the node's systemd, in the order in which to try them: the system
// bus, and systemd's own socket for root, which needs no bus.
func Addresses() []Address {
	bus := cmp.Or(os.Getenv("DBUS_SYSTEM_BUS_ADDRESS"), "unix:path=/run/dbus/system_bus_socket")
	return []Address{{DBus: bus}, {DBus: "unix:path=/run/systemd/private", Direct: true}}
}

// Events are what a Manager reports. They are called one at a time and may take their time
// but for the answer to reloads and reconnections, which wait. Each may be nil.
type Events struct {
	Connected func(version int)
	// Unavailable reports that values are only in files: once when a connection ends, and once
	// when a unit's value is written before there was any connection.
	Unavailable func(err error)
	// Refused reports a property that systemd did not take. The value is in the file, and Retry
	// reports nothing for as long as the reason is the same.
	Refused func(unit, property string, err error)
	// Reloaded reports that systemd has read its configuration again, and has written
	// the files of its properties.
	Reloaded func()
}

// Manager is a connection to systemd's manager, which is made again whenever it ends. Its
// methods may be called from several goroutines at once.
type Manager struct {
	cgroups   int // the version of cgroups
	addresses []Address
	events    Events
	tried     chan struct{} // closed once Run has tried to connect
	hasTried  func()        // closes it
	setting   sync.Mutex    // held while properties are set: memory.oom.group is to be what no other call has made of it

	mu       sync.Mutex
	conn     *dbus.Conn // nil: not connected
	version  int
	lastErr  error // why there is no connection
	reported bool  // as unavailable, since the last connection
	silent   bool  // systemd did not answer the last call in time
	due      map[Kept]*due

	// oomGroups are values of memory.oom.group, by the path of the cgroup, of units of which systemd has not answered a
	// call in time: it may still carry that out, and overwrite the file.
	oomGroups map[string]string

	// written are the writes behind due, by the path of the cgroup and the kernel's name of the file.
	written map[string]map[string]written
}

// New returns a Manager without a connection: Run makes it. cgroups is the version of cgroups.
func New(cgroups int, addresses []Address, events Events) *Manager {
	tried := make(chan struct{})
	return &Manager{
		cgroups: cgroups, addresses: addresses, events: events, tried: tried, hasTried: sync.OnceFunc(func() { close(tried) }),
		due: map[Kept]*due{}, oomGroups: map[string]string{},
		written: map[string]map[string]written{},
	}
}

// Run connects to systemd, again after a while when that fails or the connection ends, and
// reports events, until ctx ends.
func (m *Manager) Run(ctx context.Context) {
	retry := minRetry
	for ctx.Err() == nil {
		connected, err := m.serve(ctx)
		m.mu.Lock()
		m.conn, m.lastErr = nil, err
		m.mu.Unlock()
		m.hasTried()
		if connected {
			retry = minRetry
		}
		if connected && ctx.Err() == nil {
			m.unavailable(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry/2 + rand.N(retry/2)):
		}
		retry = min(2*retry, maxRetry)
	}
}

// serve makes one connection and returns when it has ended.
func (m *Manager) serve(ctx context.Context) (connected bool, err error) {
	conn, signals, err := m.connect(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	version, err := versionOf(ctx, conn)
	if err != nil {
		return false, err
	}
	m.mu.Lock()
	m.conn, m.version, m.reported, m.silent = conn, version, false, false
	m.mu.Unlock()
	m.hasTried()
	if m.events.Connected != nil {
		m.events.Connected(version)
	}
	for s := range signals { // it is closed with the connection
		ended := s.Name == manager+".Reloading" && len(s.Body) == 1 && s.Body[0] == false // it is true at the beginning
		if ended && m.events.Reloaded != nil {
			m.events.Reloaded()
		}
	}
	return true, errors.New("the connection to systemd has ended")
}

// connect tries each address.
func (m *Manager) connect(ctx context.Context) (*dbus.Conn, <-chan *dbus.Signal, error) {
	var errs []error
	for _, address := range m.addresses {
		signals := make(chan *dbus.Signal, 64)
		conn, err := dial(ctx, address, signals)
		if err == nil {
			return conn, signals, nil
		}
		errs = append(errs, fmt.Errorf("connect to systemd at %s: %w", address.DBus, err))
	}
	return nil, nil, errors.Join(errs...)
}

// dial connects, and has systemd send its signals.
func dial(ctx context.Context, address Address, signals chan<- *dbus.Signal) (_ *dbus.Conn, err error) {
	conn, err := dbus.Dial(address.DBus, dbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			conn.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() }) // Auth and Hello know no deadline
	defer stop()
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Getuid()))}); err != nil {
		return nil, err
	}
	conn.Signal(signals)
	if address.Direct {
		return conn, nil
	}
	if err := conn.Hello(); err != nil {
		return nil, err
	}
	reloading := []dbus.MatchOption{dbus.WithMatchSender(service), dbus.WithMatchInterface(manager), dbus.WithMatchMember("Reloading")}
	if err := conn.AddMatchSignalContext(ctx, reloading...); err != nil {
		return nil, err
	}
	return conn, conn.Object(service, object).CallWithContext(ctx, manager+".Subscribe", 0).Err
}

func versionOf(ctx context.Context, conn *dbus.Conn) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	var text string
	call := conn.Object(service, object).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, manager, "Version")
	if err := call.Store(&text); err != nil {
		return 0, fmt.Errorf("read the version of systemd: %w", err)
	}
	return parseVersion(text)
}

// parseVersion reads the number of "252.38-1~deb12u1" and "v245.4-1.fc32".
func parseVersion(text string) (version int, err error) {
	if _, err := fmt.Sscanf(strings.TrimPrefix(text, "v"), "%d", &version); err != nil {
		return 0, fmt.Errorf("read the version of systemd: %.64q does not begin with a number", text)
	}
	return version, nil
}

// unavailable reports it, if that was not done since the last connection.
func (m *Manager) unavailable(err error) {
	m.mu.Lock()
	first := !m.reported
	m.reported = true
	m.mu.Unlock()
	if first && m.events.Unavailable != nil {
		m.events.Unavailable(err)
	}
}
