package lastgood

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// MaxBytes is what the files of a Store may have together: some hundred plugins.
const MaxBytes = 256 << 20

const (
	baseDir       = "last-good" // a name that no directory of an operator's plugins has: what is unknown in it is removed
	pluginsDir    = "plugins"
	modulesDir    = "modules"
	startFile     = "starting"
	entrySuffix   = ".json"
	moduleSuffix  = ".wasm"
	formatVersion = 1
	maxEntry      = 8 << 20 // bytes: a JSON file of 1 MiB, each of whose bytes may be escaped, and the same in base64
)

// Version is a version of a plugin that was good.
type Version struct {
	Description registry.Description
	Since       time.Time // when it became active first
}

// Store is a directory of last good versions, of one proxy. A restart begins the next process when the one before has
// ended, so that nobody else writes there. Only a copy of the good settings comes into the standard directory from a proxy
// that has another data-dir. Its methods are not for concurrent use.
type Store struct {
	dir string
	max int64
}

// entry is the content of a plugin's file.
type entry struct {
	Version int       `json:"version"`
	File    string    `json:"file"`             // the Description's
	Text    string    `json:"text,omitempty"`   // of its JSON file
	Raw     []byte    `json:"raw,omitempty"`    // the same, if that is not UTF-8, which JSON would replace
	Digest  string    `json:"digest,omitempty"` // of its module
	Since   time.Time `json:"since"`
}

// Open opens a directory, and makes it if it is not there. It refuses one that somebody else can change.
func Open(dir string) (*Store, error) {
	s := &Store{filepath.Join(dir, baseDir), MaxBytes}
	if err := s.make(dir); err != nil {
		return nil, fmt.Errorf("directory for the last good versions of plugins: %w", err)
	}
	return s, nil
}

// make makes the directories that are not there.
func (s *Store) make(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := registry.CheckTrust(dir); err != nil {
		return err
	}
	for _, path := range []string{s.dir, filepath.Join(s.dir, pluginsDir), filepath.Join(s.dir, modulesDir)} {
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := os.Lstat(path)
		if err == nil && !info.IsDir() {
			err = errors.New("is not a directory")
		}
		if err == nil {
			err = own(info)
		}
		if err != nil {
			return fmt.Errorf("%s %w", path, regular.Cause(err))
		}
	}
	return nil
}

// Remove removes what a Store has made in a directory, which may hold other things.
func Remove(dir string) error {
	return os.RemoveAll(filepath.Join(dir, baseDir))
}

// Begin notes that a process starts, and reports whether the one before did not call End: it has crashed, and a
// version may be the cause.
func (s *Store) Begin() (crashed bool) {
	f, err := os.OpenFile(filepath.Join(s.dir, startFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		f.Close()
	}
	return errors.Is(err, fs.ErrExist)
}

// End removes the note of Begin.
func (s *Store) End() {
	_ = os.Remove(filepath.Join(s.dir, startFile)) // it may be gone; else the next process takes this one for crashed
}

// Copy returns the path of the copy of a description's module, which there is if the description is kept; "" if there is
// none.
func (s *Store) Copy(d registry.Description) string {
	if d.Digest == "" {
		return ""
	}
	return s.modulePath(d.Digest)
}

// own wants a file or directory that is this process's alone: its content runs in the proxy.
func own(info fs.FileInfo) error { return regular.Own(info, 0o077) }

// All returns the versions by the ids of their plugins. The errors say which could not be read, is not trusted
// or is damaged: there is none then.
func (s *Store) All(dirs registry.Dirs) (all map[string]Version, ignored []error) {
	all = map[string]Version{}
	for _, id := range s.ids(&ignored) {
		v, err := s.read(dirs, id)
		if err != nil {
			ignored = append(ignored, fmt.Errorf("%s: %w", s.entryPath(id), err))
			continue
		}
		all[id] = v
	}
	return all, ignored
}

func (s *Store) ids(failed *[]error) (ids []string) {
	files, err := os.ReadDir(filepath.Join(s.dir, pluginsDir))
	if err != nil {
		*failed = append(*failed, err)
	}
	for _, f := range files {
		if id, is := strings.CutSuffix(f.Name(), entrySuffix); is {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s *Store) read(dirs registry.Dirs, id string) (v Version, err error) {
	e, err := s.entry(id)
	if err != nil {
		return v, err
	}
	copied := ""
	if e.Digest != "" {
		copied = s.modulePath(e.Digest)
		if _, err := s.module(e.Digest); err != nil {
			return v, fmt.Errorf("%s: %w", copied, err)
		}
	}
	d, err := dirs.Restore(e.File, cmp.Or(string(e.Raw), e.Text), e.Digest, copied)
	if err == nil && d.ID != id {
		err = fmt.Errorf("it is of plugin %s", d.ID)
	}
	return Version{d, e.Since}, err
}

func (s *Store) entry(id string) (e entry, err error) {
	if err := regular.ReadState(s.entryPath(id), maxEntry, formatVersion, &e); err != nil {
		return e, err
	}
	if sum, err := hex.DecodeString(e.Digest); err != nil || len(sum) != 0 && len(sum) != sha256.Size {
		return e, fmt.Errorf("%.64q is not a SHA-256 in hex", e.Digest)
	}
	return e, nil
}

func (s *Store) module(digest string) ([]byte, error) {
	module, err := regular.Read(s.modulePath(digest), abi.MaxModule, own)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(module); hex.EncodeToString(sum[:]) != digest {
		return nil, errors.New("is damaged")
	}
	return module, nil
}

// Keep makes this the last good version of its plugin. The module is read from the description.
func (s *Store) Keep(v Version) error {
	d := v.Description
	e := entry{Version: formatVersion, File: d.File, Text: d.Text, Digest: d.Digest, Since: v.Since}
	if !utf8.ValidString(d.Text) {
		e.Raw = []byte(d.Text)
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	var module []byte
	if d.Digest != "" {
		if _, err := s.module(d.Digest); err != nil {
			if module, err = d.ReadModule(); err != nil {
				return err
			}
		}
	}
	// The version that is replaced makes room for this one only after it: a full disk leaves that.
	if used := s.collect(); used+int64(len(text)+len(module)) > s.max {
		return fmt.Errorf("the last good versions of plugins have more than %d MiB together", s.max>>20)
	}
	if module != nil {
		if err := regular.Replace(s.modulePath(d.Digest), module, 0o600); err != nil {
			return err
		}
	}
	if err := regular.Replace(s.entryPath(d.ID), text, 0o600); err != nil {
		return err
	}
	s.collect()
	return nil
}

// Retain removes the versions of all plugins but these.
func (s *Store) Retain(ids map[string]bool) error {
	var failed []error
	for _, id := range s.ids(&failed) {
		if !ids[id] {
			failed = append(failed, os.Remove(s.entryPath(id)))
		}
	}
	s.collect()
	return errors.Join(failed...)
}

// collect removes modules that no version needs and what writes have left behind, and returns how many bytes
// remain.
func (s *Store) collect() (used int64) {
	needed, failed := map[string]bool{}, []error{}
	for _, id := range s.ids(&failed) {
		e, err := s.entry(id)
		if err == nil {
			needed[e.Digest+moduleSuffix] = true
		} else if errors.As(err, new(syscall.Errno)) {
			failed = append(failed, err)
		}
	}
	for _, dir := range []string{pluginsDir, modulesDir} {
		files, _ := os.ReadDir(filepath.Join(s.dir, dir))
		for _, f := range files {
			info, err := f.Info()
			path := filepath.Join(s.dir, dir, f.Name())
			keep := strings.HasSuffix(f.Name(), entrySuffix)
			if dir == modulesDir {
				keep = needed[f.Name()] || len(failed) > 0 // a version that cannot be read at the moment may need it
			}
			switch {
			case err != nil:
			case keep:
				used += info.Size()
			case info.Mode().IsRegular():
				_ = os.Remove(path) // the next one tries again
			}
		}
	}
	return used
}

func (s *Store) entryPath(id string) string { return filepath.Join(s.dir, pluginsDir, id+entrySuffix) }

func (s *Store) modulePath(digest string) string {
	return filepath.Join(s.dir, modulesDir, digest+moduleSuffix)
}
