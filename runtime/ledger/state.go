package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// stateVersion is that of the state files. A file of a later version is ignored.
const stateVersion = 1

// maxState bounds a state file, in bytes: a pod with 100 containers and 30 values each has some
// 1 MiB.
const maxState = 8 << 20

// state is the content of a state file: all that is known of one pod. It has no environment
// variable, and nothing else of a container's config but resources.
type state struct {
	Version int    `json:"version"`
	Pod     string `json:"pod"` // UID
	savedObject
	Containers map[string]savedObject `json:"containers,omitempty"` // by ID
}

// savedObject is an object in a state file.
type savedObject struct {
	Group  string            `json:"group,omitempty"`
	Values map[Target]*Value `json:"values,omitempty"`
}

// Open returns the ledger whose records are in the directory, which it makes with mode 0700. An
// event tells of each file that it ignores. The caller closes the ledger.
func Open(ctx context.Context, dir string, observer observe.Observer) (*Ledger, error) {
	l := &Ledger{observer: observer, pods: map[string]*pod{}}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("making the directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the directory: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the directory: %w", err)
	}
	if l.files, err = root.Open("."); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the directory: %w", err), root.Close())
	}
	l.dir = root
	if err := errors.Join(root.Chmod(".", 0o700), l.load(ctx)); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the directory: %w", err), l.Close())
	}
	return l, nil
}

// Close releases the state directory, and leaves its files.
func (l *Ledger) Close() error {
	if l.dir == nil {
		return nil
	}
	return errors.Join(l.files.Close(), l.dir.Close())
}

// Release leaves the state directory to another process. Changes from now on are only in memory.
func (l *Ledger) Release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = true
}

// Reload reads the records again, which another process has changed, and saves changes from now
// on. What was in memory alone is gone.
func (l *Ledger) Reload(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = false
	if l.dir == nil {
		return nil
	}
	l.pods = map[string]*pod{}
	if err := l.load(ctx); err != nil {
		return fmt.Errorf("reading the state directory again: %w", err)
	}
	return nil
}

func (l *Ledger) load(ctx context.Context) error {
	files, err := fs.ReadDir(l.dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), stateSuffix) {
			continue // such as a file that was being written when the proxy was killed
		}
		if err := l.loadFile(f.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) { // another process may remove files until this one has the state
			l.observer.Observe(ctx, &observe.StateIgnored{File: f.Name(), Err: err})
		}
	}
	return nil
}

func (l *Ledger) loadFile(name string) error {
	info, err := l.dir.Lstat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxState) {
		err = fmt.Errorf("it is not a regular file of at most %d bytes", maxState)
	}
	if err != nil {
		return err
	}
	f, err := l.dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxState))
	if err != nil {
		return err
	}
	var s state
	switch err := json.Unmarshal(text, &s); {
	case err != nil:
		return err
	case s.Version != stateVersion:
		return fmt.Errorf("its version is %d, and this version of wasmproxy reads %d", s.Version, stateVersion)
	case name != stateFile(s.Pod):
		return fmt.Errorf("it is that of another pod: %.64q", s.Pod)
	}
	l.pods[s.Pod] = s.record()
	return nil
}

func (s *state) record() *pod {
	p := &pod{objects: map[string]*object{}}
	put := func(container string, saved savedObject) {
		o := newObject()
		o.group = saved.Group
		for t, v := range saved.Values {
			if v != nil {
				o.values[t] = v
			}
		}
		if len(o.values) > 0 {
			p.objects[container] = o
		}
	}
	put("", s.savedObject)
	for id, saved := range s.Containers {
		put(id, saved)
	}
	return p
}

const stateSuffix = ".json"

// stateFile is the name of a pod's file. Kubernetes' UIDs are names of files, and other texts
// are made one.
func stateFile(uid string) string {
	name := uid
	odd := func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') }
	if uid == "" || len(uid) > 64 || strings.ContainsFunc(uid, odd) {
		sum := sha256.Sum256([]byte(uid))
		name = "x_" + hex.EncodeToString(sum[:16]) // no UID has an underscore
	}
	return name + stateSuffix
}

// save replaces the pod's file. A failure is an event, once until it succeeds again: the values
// are written nevertheless. The caller has the lock.
func (l *Ledger) save(uid string, p *pod) {
	if l.dir == nil || l.away {
		return
	}
	text, err := p.encode(l.buffer[:0], uid)
	if err == nil {
		err = l.replace(stateFile(uid), text)
	}
	if l.buffer = text; cap(text) > maxBuffer {
		l.buffer = nil
	}
	l.report(stateFile(uid), err)
}

// maxBuffer bounds the buffer that is kept between saves, in bytes: a pod with 100 containers and
// 30 values each fits.
const maxBuffer = 1 << 20

// encode appends the pod's state. Only objects that have changed are encoded anew, since a pod may
// have many containers.
func (p *pod) encode(text []byte, uid string) ([]byte, error) {
	name, err := json.Marshal(uid)
	if err != nil {
		return text, err
	}
	text = strconv.AppendInt(append(text, `{"version":`...), stateVersion, 10)
	text = append(append(text, `,"pod":`...), name...)
	opening := `,"containers":{`
	for container, o := range p.objects {
		if err := o.encode(container); err != nil {
			return text, err
		}
		if container != "" {
			text = append(append(text, opening...), o.text...)
			opening = ","
		}
	}
	if opening == "," {
		text = append(text, '}')
	}
	if own := p.objects[""]; own != nil {
		text = append(append(text, ','), own.text...)
	}
	return append(text, '}'), nil
}

// encode sets the text of the object: the fields of a pod, or a container's with its ID.
func (o *object) encode(container string) error {
	if o.text != nil {
		return nil
	}
	text, err := json.Marshal(savedObject{o.group, o.values})
	if err != nil {
		return err
	}
	if container == "" {
		o.text = text[1 : len(text)-1]
		return nil
	}
	name, err := json.Marshal(container)
	o.text = append(append(name, ':'), text...)
	return err
}

// replace writes a file of the directory beside the one of that name, and puts it in its place. A call
// waits for it: os.Root takes ten system calls in the place of four.
func (l *Ledger) replace(name string, text []byte) error {
	temporary, dir := name+".new", int(l.files.Fd())
	fd, err := unix.Openat(dir, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "open", Path: temporary, Err: err}
	}
	for rest := text; err == nil && len(rest) > 0; {
		n, failed := unix.Write(fd, rest)
		if failed != unix.EINTR {
			rest, err = rest[max(n, 0):], failed
		}
	}
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return &fs.PathError{Op: "write", Path: temporary, Err: err}
	}
	if err := unix.Renameat(dir, temporary, dir, name); err != nil {
		return &fs.PathError{Op: "rename", Path: temporary, Err: err}
	}
	return nil
}

// erase removes the file of a pod of which nothing is to be known.
func (l *Ledger) erase(uid string) {
	if l.dir == nil || l.away {
		return
	}
	if err := l.dir.Remove(stateFile(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.report(stateFile(uid), err)
	}
}

func (l *Ledger) report(name string, err error) {
	if err != nil && !l.unsafe {
		l.observer.Observe(context.Background(), &observe.StateNotSaved{File: name, Err: err})
	}
	l.unsafe = err != nil
}
