package enforce

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// OpenLedger returns the ledger whose records are in the directory, which it makes with mode 0700. On a file system that has become
// read-only, as after an error of the disk, it keeps the mode it has. Events tell of what the ledger ignores there. It writes nothing
// before the first change. The caller closes it.
func OpenLedger(ctx context.Context, dir string, observer observe.Observer) (*Ledger, error) {
	l := NewLedger()
	l.observer, l.journal.dir = observer, dir
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("making the directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("making the directory: %w", err)
	}
	if err := os.Chmod(dir+"/.", 0o700); err != nil && !errors.Is(err, syscall.EROFS) { // also an error if it is no directory
		return nil, fmt.Errorf("opening the directory: %w", err)
	}
	if err := l.load(ctx); err != nil {
		l.ignored[""] = err
		observer.Observe(ctx, &observe.StateIgnored{File: journalFile, Err: err})
	}
	return l, nil
}

// Close leaves the state directory as it is: nothing is written there any more.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.journal.leave()
	l.journal.dir = ""
	return nil
}

// Saved reports whether the state directory has all that it is to have, or there is none.
func (l *Ledger) Saved() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unsaved == nil
}

// Ignored returns why what the journal has of a pod was ignored, or a line that does not say of which pod it is; nil if nothing
// was. The owners of the values that the pod had then are not known.
func (l *Ledger) Ignored(uid string) (reason error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reason = l.ignored[uid]; reason == nil {
		reason = l.ignored[""]
	}
	return reason
}

// IgnoredPods returns why lines of the journal were ignored, by the UIDs of pods that have not ended; "" if a line does not say
// of which pod it is, until the next boot.
func (l *Ledger) IgnoredPods() map[string]error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.ignored)
}

// check refuses a line of another version, and one that would have values written to cgroups that are not those of pods.
func (s *line) check() error {
	switch {
	case s.Version != stateVersion:
		return regular.AnotherVersion(s.Version, stateVersion)
	case s.mayHave(s.Group):
		return nil
	case s.Container == "":
		return fmt.Errorf("it says that %.256q is the cgroup of the pod, which cannot be", s.Group)
	default:
		return fmt.Errorf("it says that %.256q is the cgroup of container %.64q, which cannot be", s.Group, s.Container)
	}
}

// mayHave reports whether a pod or container may have this cgroup. Who makes pods without kubelet chooses theirs, so that only
// those are refused that systemd has for something else. A container's has its id, or is one of a pod of kubelet's.
func (s *line) mayHave(group string) bool {
	above, last := path.Split(group)
	unit := path.Ext(last)
	switch {
	case group == "":
		return true
	case !path.IsAbs(group), path.Clean(group) != group, last == "", unit == ".service", unit == ".scope" && s.Container == "":
		return false
	case strings.Contains(above, "kubepods"): // above it may be a unit in which kubelet runs
		return true
	case s.Container != "":
		return strings.Contains(last, s.Container)
	}
	return !strings.Contains(above, ".service/") && !slices.Contains([]string{"system.slice", "user.slice", "machine.slice"}, last)
}
