// Package regular reads regular files of a limited size, says whose they are, replaces files at once, and locks them. Nothing that a
// path can name makes a reader wait: a pipe, a device and a directory are errors, which do not name the path.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a regular file of at most limit bytes that check, if it is not nil, accepts.
func Open(path string, limit int64, check func(fs.FileInfo) error) (*os.File, error) {
	accept := func(info fs.FileInfo, err error) error {
		switch {
		case err != nil:
			return Cause(err)
		case !info.Mode().IsRegular():
			return fmt.Errorf("is not a regular file (mode %v)", info.Mode())
		case info.Size() > limit:
			return fmt.Errorf("has %d bytes, more than the %d that are allowed", info.Size(), limit)
		case check == nil:
			return nil
		}
		return check(info)
	}
	if err := accept(os.Stat(path)); err != nil { // before a device is opened, which may do something
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, Cause(err)
	}
	if err := accept(f.Stat()); err != nil { // it may be another by now
		f.Close()
		return nil, err
	}
	return f, nil
}

// Read returns the content of a regular file of at most limit bytes that check, if it is
// not nil, accepts.
func Read(path string, limit int64, check func(fs.FileInfo) error) ([]byte, error) {
	f, err := Open(path, limit, check)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, Cause(err)
	}
	if int64(len(b)) > limit { // it grew after it was opened
		return nil, fmt.Errorf("has more than the %d bytes that are allowed", limit)
	}
	return b, nil
}

// Cause takes the path out of a file system's error.
func Cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Own returns why a file is not this process's user's, or others have one of the forbidden bits of its mode.
func Own(info fs.FileInfo, forbidden fs.FileMode) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(st.Uid) != os.Geteuid():
		return fmt.Errorf("does not belong to user %d", os.Geteuid())
	case info.Mode().Perm()&forbidden != 0:
		return fmt.Errorf("has mode %04o, and others may use it", info.Mode().Perm())
	}
	return nil
}
