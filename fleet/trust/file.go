package trust

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// File is a trust file that is read again when it has changed, or a file that it names. It is safe for concurrent use.
type File struct {
	path string

	mu      sync.Mutex
	seen    []stamp // of the files that were read; nil: none was read yet
	changes int
	policy  *Policy
	err     error
}

// stamp is what a file was like when it was read.
type stamp struct {
	path   string
	absent bool
	time   unix.Timespec // of the last change, also of who may read it
	size   int64
}

// NewFile makes a File of a path. It reads nothing.
func NewFile(path string) *File { return &File{path: path} }

// Policy is the policy as the files are now, nil if there is no trust file, and how often it has changed. As long as a file is wrong,
// the error says so.
func (f *File) Policy() (p *Policy, changes int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen != nil && !slices.ContainsFunc(f.seen, func(s stamp) bool { return s != stampOf(s.path) }) {
		return f.policy, f.changes, f.err
	}
	f.changes++
	f.policy, f.err = nil, nil
	f.seen = []stamp{stampOf(f.path)} // before it is read, so that a change in between is seen the next time
	if !f.seen[0].absent {
		p := &Policy{file: f.path, reading: func(path string) { f.seen = append(f.seen, stampOf(path)) }}
		f.policy, f.err = p.load()
	}
	return f.policy, f.changes, f.err
}

func stampOf(path string) stamp {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) { // a link that leads nowhere is there
		return stamp{path: path, absent: true}
	}
	var is unix.Stat_t // its zero value if that cannot be told
	_ = unix.Stat(path, &is)
	return stamp{path: path, time: is.Ctim, size: is.Size}
}
