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
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
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
	Pod     string `json:"pod"`               // UID
	Ignored string `json:"ignored,omitempty"` // why the pod's file before this one was ignored
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
	if err := errors.Join(root.Chmod(".", 0o700), l.open(ctx)); err != nil {
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
// What could not be saved is tried again first. After an error, which names it, nothing is left.
func (l *Ledger) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var failed error
	for uid, p := range l.pods {
		if p.unsaved {
			failed = errors.Join(failed, l.save(uid, p))
		}
	}
	for uid := range l.unerased {
		failed = errors.Join(failed, l.erase(uid))
	}
	if failed != nil {
		return fmt.Errorf("saving the values of plugins in state-dir: %w", failed)
	}
	l.away = true
	return nil
}

// Reload reads the records again, which another process has changed, and saves changes from now
// on. What was in memory alone is gone. The error says which records could not be read: these stay as
// they are in memory.
func (l *Ledger) Reload(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = false
	if l.dir == nil {
		return nil
	}
	r, err := l.load(ctx)
	if err != nil {
		return fmt.Errorf("reading the state directory again: %w", err)
	}
	for name, failed := range r.unread {
		r.ignored[name] = failed
		err = errors.Join(err, fmt.Errorf("reading the state directory again: %w", failed))
	}
	for uid, p := range l.pods {
		name := stateFile(uid)
		if r.unread[name] == nil {
			continue
		}
		r.pods[uid] = p
		if delete(r.ignored, name); l.ignored[name] != nil {
			r.ignored[name] = l.ignored[name]
		}
	}
	l.pods, l.ignored = r.pods, r.ignored
	return err
}

// open reads the records for the first time. A file that cannot be read is ignored.
func (l *Ledger) open(ctx context.Context) error {
	r, err := l.load(ctx)
	for name, failed := range r.unread {
		r.ignored[name] = failed
		l.observer.Observe(ctx, &observe.StateIgnored{File: name, Err: failed})
	}
	l.pods, l.ignored = r.pods, r.ignored
	return err
}

// records are what is in a state directory. The maps of errors are by the names of the files.
type records struct {
	pods    map[string]*pod  // by UID
	unread  map[string]error // why files could not be read
	ignored map[string]error // why files have no valid record, or a file of the same pod had none before
}

// load reads the records. An event tells of each file that has no valid record.
func (l *Ledger) load(ctx context.Context) (records, error) {
	r := records{map[string]*pod{}, map[string]error{}, map[string]error{}}
	files, err := fs.ReadDir(l.dir.FS(), ".")
	if err != nil {
		return r, err
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), stateSuffix) {
			continue // such as a file that was being written when the proxy was killed
		}
		switch s, err := l.loadFile(f.Name()); {
		case err == nil:
			r.pods[s.Pod] = s.record()
			if s.Ignored != "" {
				r.ignored[f.Name()] = errors.New(s.Ignored)
			}
		case errors.Is(err, fs.ErrNotExist): // another process may remove files until this one has the state
		case errors.As(err, new(*fs.PathError)):
			r.unread[f.Name()] = err
		default:
			r.ignored[f.Name()] = err
			l.observer.Observe(ctx, &observe.StateIgnored{File: f.Name(), Err: err})
		}
	}
	return r, nil
}

// Saved reports whether the state directory has all that it is to have, or there is none.
func (l *Ledger) Saved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.pods {
		if p.unsaved {
			return false
		}
	}
	return len(l.unerased) == 0
}

// Ignored returns the name of a pod's state file that was ignored, and the reason; nil if none was. The
// owners of the values that the pod had then are not known.
func (l *Ledger) Ignored(uid string) (file string, reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	file = stateFile(uid)
	return file, l.ignored[file]
}

// IgnoredFiles returns why state files were ignored, by their names: those of pods that have not ended.
func (l *Ledger) IgnoredFiles() map[string]error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.ignored)
}

func (l *Ledger) loadFile(name string) (*state, error) {
	info, err := l.dir.Lstat(name)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxState) {
		err = fmt.Errorf("it is not a regular file of at most %d bytes", maxState)
	}
	if err == nil {
		err = regular.Own(info, 0o022)
	}
	if err != nil {
		return nil, err
	}
	f, err := l.dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxState))
	if err != nil {
		return nil, err
	}
	s := new(state)
	switch err := json.Unmarshal(text, s); {
	case err != nil:
		return nil, err
	case s.Version != stateVersion:
		return nil, fmt.Errorf("its version is %d, and this version of wasmproxy reads %d", s.Version, stateVersion)
	case name != stateFile(s.Pod):
		return nil, fmt.Errorf("it is that of another pod: %.64q", s.Pod)
	}
	return s, s.checkGroups()
}

// checkGroups refuses a record that would have values written to cgroups that are not those of pods.
func (s *state) checkGroups() error {
	if !mayBePod(s.Group) {
		return fmt.Errorf("it says that %.256q is the cgroup of the pod, which cannot be", s.Group)
	}
	for id, saved := range s.Containers {
		if !mayBeContainer(saved.Group, id) {
			return fmt.Errorf("it says that %.256q is the cgroup of container %.64q, which cannot be", saved.Group, id)
		}
	}
	return nil
}

// mayBePod reports whether a pod may have this cgroup. Who makes pods without kubelet chooses it, so that only those are
// refused that systemd has for something else.
func mayBePod(group string) bool {
	above, last := path.Split(group)
	switch {
	case group == "":
		return true
	case !path.IsAbs(group), path.Clean(group) != group, last == "", strings.HasSuffix(last, ".service"), strings.HasSuffix(last, ".scope"):
		return false
	case strings.Contains(above, "kubepods"): // above it may be a unit in which kubelet runs
		return true
	}
	return !strings.Contains(above, ".service/") && !slices.Contains([]string{"system.slice", "user.slice", "machine.slice"}, last)
}

// mayBeContainer reports whether a container may have this cgroup: that has its id, or is one of a pod of kubelet's.
func mayBeContainer(group, id string) bool {
	above, last := path.Split(group)
	switch {
	case group == "":
		return true
	case !path.IsAbs(group), path.Clean(group) != group, last == "", strings.HasSuffix(last, ".service"):
		return false
	}
	return strings.Contains(above, "kubepods") || id != "" && strings.Contains(last, id)
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
