package systemd

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	escape "github.com/coreos/go-systemd/v22/dbus"
	"github.com/godbus/dbus/v5"
)

// delayed is a systemd whose first answer to SetProperties waits for a function. As systemd does,
// it writes TasksMax into the file of the unit's group. The real one cannot be told to wait.
type delayed struct {
	during  func(group string) // the first SetProperties
	begun   atomic.Bool
	answers chan struct{} // it answers no call before this is closed; nil: it answers at once

	mu     sync.Mutex
	files  map[string]string // pids.max by group
	serial uint32
}

func (d *delayed) write(group, value string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[group] = value
}

func (d *delayed) read(group string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[group]
}

// serve answers the calls that come in, each in its own time, until the connection ends.
func (d *delayed) serve(c net.Conn) {
	in := bufio.NewReader(c)
	for line := ""; !strings.HasPrefix(line, "BEGIN"); {
		var err error
		if line, err = in.ReadString('\n'); err != nil {
			return
		}
		switch line = strings.TrimLeft(line, "\x00"); {
		case strings.HasPrefix(line, "AUTH EXTERNAL"):
			fmt.Fprint(c, "OK 0123456789abcdef0123456789abcdef\r\n")
		case strings.HasPrefix(line, "AUTH"):
			fmt.Fprint(c, "REJECTED EXTERNAL\r\n")
		}
	}
	for units := map[dbus.ObjectPath]string{}; ; {
		m, err := dbus.DecodeMessage(in)
		if err != nil {
			return
		}
		switch m.Headers[dbus.FieldMember].Value() {
		case "Ping":
			go d.answer(c, m)
		case "GetUnitByControlGroup":
			group := m.Body[0].(string)
			unit := object + "/unit/" + dbus.ObjectPath(escape.PathBusEscape(path.Base(group)))
			units[unit] = group
			go d.answer(c, m, unit)
		case "SetProperties":
			group := units[m.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)]
			var names []string
			for _, p := range m.Body[1].([][]any) {
				names = append(names, fmt.Sprint(p[0]))
			}
			d.write("properties of "+group, strings.Join(names, " "))
			value := fmt.Sprint(m.Body[1].([][]any)[0][1].(dbus.Variant).Value())
			go func() {
				d.write(group, value)
				if d.begun.CompareAndSwap(false, true) && d.during != nil {
					d.during(group)
				}
				d.answer(c, m)
			}()
		}
	}
}

func (d *delayed) answer(c net.Conn, call *dbus.Message, body ...any) {
	m := &dbus.Message{Type: dbus.TypeMethodReply, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(call.Serial())}}
	if len(body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	var text bytes.Buffer
	if err := m.EncodeTo(&text, binary.LittleEndian); err != nil {
		panic(err)
	}
	if d.answers != nil {
		<-d.answers
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.serial++
	binary.LittleEndian.PutUint32(text.Bytes()[8:], d.serial) // which the library sets for calls alone
	_, _ = c.Write(text.Bytes())
}

func (d *delayed) connect(t *testing.T) *dbus.Conn {
	ours, theirs := net.Pipe()
	go d.serve(theirs)
	conn, err := dbus.NewConn(ours)
	if err == nil {
		t.Cleanup(func() { conn.Close() })
		err = conn.Auth([]dbus.Auth{dbus.AuthExternal("0")})
	}
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// While Retry waits for systemd, a file of another unit may be written, and systemd be told: Retry
// then leaves that unit alone. What systemd makes of the file before it is told does not count.
func TestRetryLeavesANewerValueAlone(t *testing.T) {
	d := &delayed{files: map[string]string{"/a.slice": "71", "/b.slice": "71"}}
	m := New(2, nil, Events{Refused: func(unit, property string, err error) { t.Errorf("%s: %s was refused: %v", unit, property, err) }})
	m.hasTried()
	var reads atomic.Int32
	keep := func(group string) {
		m.Keep(t.Context(), Kept{group, "pids.max"}, Files{Read: func(name string) string {
			if name == oomGroup {
				return ""
			}
			defer reads.Add(1)
			return d.read(group)
		}})
	}
	keep("/a.slice") // without a connection it is due
	keep("/b.slice")
	other, kept := "", make(chan struct{})
	d.during = func(first string) {
		other = map[string]string{"/a.slice": "/b.slice", "/b.slice": "/a.slice"}[first]
		d.write(other, "99")
		seen := reads.Load()
		go func() {
			keep(other)
			close(kept)
		}()
		for reads.Load() == seen {
			time.Sleep(time.Millisecond)
		}
		d.write(other, "71")
	}
	m.conn, m.version = d.connect(t), 255
	m.Retry(t.Context())
	<-kept
	if got := d.read(other); got != "99" || len(m.due) > 0 {
		t.Errorf("pids.max of %s is %s, want 99; due is %v", other, got, m.due)
	}
}

// What is due of a unit goes along with its next property: with that, systemd writes all files of the unit, and would
// overwrite one of which it has an earlier value.
func TestWhatIsDueGoesAlong(t *testing.T) {
	d := &delayed{files: map[string]string{}}
	m := New(2, nil, Events{})
	m.hasTried()
	keep := func(file, value string) {
		m.Keep(t.Context(), Kept{"/a.slice", file}, Files{Read: func(name string) string {
			return map[string]string{file: value}[name]
		}})
	}
	keep("cpu.weight", "50") // without a connection it is due
	m.conn, m.version = d.connect(t), 255
	keep("pids.max", "99")
	if got := d.read("properties of /a.slice"); got != "CPUWeight TasksMax" {
		t.Errorf("systemd was told of %q", got)
	}
}

// A connection that has ended is no refusal of each property that was to be set: it is tried again over the next one.
func TestAnEndedConnectionRefusesNothing(t *testing.T) {
	d := &delayed{files: map[string]string{"/a.slice": "99"}}
	m := New(2, nil, Events{Refused: func(unit, property string, err error) { t.Errorf("%s: %s was refused: %v", unit, property, err) }})
	m.hasTried()
	m.conn, m.version = d.connect(t), 255
	m.conn.Close()
	files := Files{Read: func(string) string { return d.read("/a.slice") }, Write: func(_, _ string) error { return nil }}
	m.Keep(t.Context(), Kept{"/a.slice", "pids.max"}, files)
	m.Retry(t.Context())
	if len(m.due) != 1 {
		t.Errorf("due is %v", m.due)
	}
	m.conn = d.connect(t)
	if m.Retry(t.Context()); len(m.due) > 0 {
		t.Errorf("over the next connection due is %v", m.due)
	}
}

// The start of a container waits once for a systemd that does not answer, and not for each of its
// files. Retry has systemd keep them once it answers.
func TestKeepWaitsOnceForASystemdThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &delayed{files: map[string]string{}, answers: make(chan struct{})}
		m := New(2, nil, Events{})
		m.hasTried()
		m.conn, m.version = d.connect(t), 255
		keep := func(group string) (waited time.Duration) {
			d.write(group, "99")
			start := time.Now()
			m.Keep(t.Context(), Kept{group, "pids.max"}, Files{Read: func(string) string { return d.read(group) }})
			return time.Since(start)
		}
		start := time.Now()
		for _, group := range []string{"/a.slice", "/b.slice", "/c.slice", "/d.slice"} {
			keep(group)
		}
		if waited := time.Since(start); waited != callTime || len(m.due) != 4 {
			t.Errorf("four files wait %v, want %v; due is %v", waited, callTime, m.due)
		}
		start = time.Now()
		m.Retry(t.Context())
		if waited := time.Since(start); waited != callTime || len(m.due) != 4 {
			t.Errorf("a retry without an answer takes %v, want %v; due is %v", waited, callTime, m.due)
		}
		close(d.answers)
		m.Retry(t.Context())
		if len(m.due) > 0 {
			t.Errorf("systemd answers again, and due is %v", m.due)
		}
		if waited := keep("/e.slice"); waited > 0 || len(m.due) > 0 {
			t.Errorf("then a file waits %v; due is %v", waited, m.due)
		}
	})
}

// A call that systemd has not answered in time may overwrite memory.oom.group later. It comes back with the retry: the
// value of before the call, or one that was written since.
func TestOOMGroupComesBackAfterALateAnswer(t *testing.T) {
	for _, since := range []string{"", "0"} {
		synctest.Test(t, func(t *testing.T) {
			const group, other = "/a.scope", "1"
			d := &delayed{files: map[string]string{group: "99", oomGroup: other}, answers: make(chan struct{})}
			m := New(2, nil, Events{})
			m.hasTried()
			m.conn, m.version = d.connect(t), 255
			files := Files{Read: func(name string) string {
				if name == oomGroup {
					return d.read(oomGroup)
				}
				return d.read(group)
			}, Write: func(name, value string) error {
				d.write(name, value)
				return nil
			}}
			m.Keep(t.Context(), Kept{group, "pids.max"}, files)
			if since != "" {
				d.write(oomGroup, since)
				m.Keep(t.Context(), Kept{group, oomGroup}, files)
			}
			d.write(oomGroup, "of systemd")
			close(d.answers)
			m.Retry(t.Context())
			if got, want := d.read(oomGroup), cmp.Or(since, other); got != want || len(m.due)+len(m.oomGroups) > 0 {
				t.Errorf("%s is %q, want %q; due are %v and %v", oomGroup, got, want, m.due, m.oomGroups)
			}
		})
	}
}

// A file may be written again before systemd has been told of it: with the value before, by a call that systemd carries out late, or
// with another property of the unit. The value of the last write comes back with the retry, and one that is neither stays.
func TestLastValueComesBack(t *testing.T) {
	const last = "18446744073709551615" // no limit
	for _, row := range []struct {
		late        bool // systemd has not answered the first call
		found, want string
	}{
		{true, "70", last}, {false, "70", last}, {true, "60", last}, {true, "50", "50"}, {false, "50", "50"}, {false, "max", last},
		{false, "", ""}, // the group has gone
	} {
		synctest.Test(t, func(t *testing.T) {
			const group = "/a.scope"
			d := &delayed{files: map[string]string{}}
			if row.late {
				d.answers = make(chan struct{})
			}
			m := New(1, nil, Events{})
			m.hasTried()
			m.conn, m.version = d.connect(t), 255
			keep := func(before, value string) {
				d.write(group, value)
				m.Keep(t.Context(), Kept{group, "pids.max"}, Files{
					Read: func(string) string { return d.read(group) }, Before: map[string]string{"pids.max": before},
				})
			}
			keep("60", "70")
			conn := m.conn
			if !row.late {
				m.conn = nil
			}
			keep("70", "max")
			d.write(group, row.found)
			if m.conn = conn; row.late {
				close(d.answers)
			}
			m.Retry(t.Context())
			if got := d.read(group); got != row.want || len(m.due)+len(m.written) > 0 {
				t.Errorf("%+v: pids.max is %s; due are %v and %v", row, got, m.due, m.written)
			}
		})
	}
}
