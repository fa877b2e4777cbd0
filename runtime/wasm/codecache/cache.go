package codecache

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// ErrNotCached is the error of Find for a module that was not compiled yet.
var ErrNotCached = errors.New("the module is not compiled yet")

// Options are what a Cache needs.
type Options struct {
	Dir string // absolute; made if it is not there

	// Program is the executable that compiles, by default the running one. It is
	// started as "<the name we run by> <Command> <job>", with the module on its
	// standard input, and calls Confine before it reads that.
	Program string

	Limits   Limits // zero fields are DefaultLimits
	MaxBytes int64  // what the directory may hold; what is in use stays in any case; 0 is DefaultMaxBytes
}

// DefaultMaxBytes is some ten plugins of Go or a thousand of Rust.
const DefaultMaxBytes = 256 << 20

// Cache is a directory of compiled modules. It is safe for concurrent use, also
// by several processes.
type Cache struct {
	dir      string
	program  string
	limits   Limits
	maxBytes int64
	children chan struct{} // holds a token for each child that runs

	mu      sync.Mutex
	users   map[string]int           // of entries, by key
	filling map[string]chan struct{} // closed when the entry of a key is no longer being filled
}

// Children is how many modules are compiled at a time: one for each processor, and two
// at least, so that a module which takes long does not hold up another.
func Children() int { return max(2, runtime.GOMAXPROCS(0)) }

// Open returns the cache of a directory. It refuses a directory that anybody
// but us could change.
func Open(o Options) (*Cache, error) {
	dir, err := openDirectory(o.Dir)
	if err != nil {
		return nil, err
	}
	l, d := o.Limits, DefaultLimits
	c := &Cache{
		dir: dir, maxBytes: cmp.Or(o.MaxBytes, DefaultMaxBytes),
		limits:   Limits{cmp.Or(l.Memory, d.Memory), cmp.Or(l.CPU, d.CPU), cmp.Or(l.Wall, d.Wall), cmp.Or(l.Output, d.Output)},
		program:  cmp.Or(o.Program, "/proc/self/exe"), // also when the file was replaced by another version
		children: make(chan struct{}, Children()), users: map[string]int{}, filling: map[string]chan struct{}{},
	}
	return c, c.prune()
}

// Entry is one compiled module.
type Entry struct {
	Key string // of the module, the settings and this processor
	Dir string // what the child has written is here, in the child's own layout

	cache *Cache
}

// Release says that the entry is not used any more; it may be pruned. It stays
// valid for what was loaded from it already.
func (e *Entry) Release() {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	if e.cache.users[e.Key]--; e.cache.users[e.Key] == 0 {
		delete(e.cache.users, e.Key)
	}
}

// Get returns the entry of a module, compiled with these settings, and has a
// child compile it if there is none, or one that is damaged. settings are all
// that the result depends on beside the module and the processor; the child gets
// them as they are. The caller releases the entry.
func (c *Cache) Get(ctx context.Context, settings string, module []byte) (*Entry, error) {
	return c.get(settings, module, func(e *Entry) error { return c.fill(ctx, e, settings, module) })
}

// Find is Get for an entry that is there already. The error is ErrNotCached if it is
// not, or is damaged.
func (c *Cache) Find(settings string, module []byte) (*Entry, error) {
	return c.get(settings, module, func(e *Entry) error {
		if verify(e.Dir) != nil {
			return ErrNotCached
		}
		return touch(e.Dir)
	})
}

func (c *Cache) get(settings string, module []byte, fill func(*Entry) error) (*Entry, error) {
	h := sha256.New()
	for _, part := range []string{processor(), settings} { // code is compiled for what the processor can do
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	h.Write(module)
	e := &Entry{Key: hex.EncodeToString(h.Sum(nil)), cache: c}
	e.Dir = filepath.Join(c.dir, e.Key)
	c.mu.Lock()
	c.users[e.Key]++
	c.mu.Unlock()
	if err := fill(e); err != nil {
		e.Release()
		return nil, err
	}
	return e, nil
}

func (c *Cache) fill(ctx context.Context, e *Entry, settings string, module []byte) error {
	if verify(e.Dir) == nil {
		return touch(e.Dir)
	}
	filled := make(chan struct{})
	for { // until nobody else fills the entry
		c.mu.Lock()
		other := c.filling[e.Key]
		if other == nil {
			c.filling[e.Key] = filled
		}
		c.mu.Unlock()
		if other == nil {
			break
		}
		select {
		case <-other:
		case <-ctx.Done():
			return Waiting(ctx)
		}
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.filling, e.Key)
		close(filled)
	}()
	select {
	case c.children <- struct{}{}:
		defer func() { <-c.children }()
	case <-ctx.Done():
		return Waiting(ctx)
	}
	if verify(e.Dir) == nil {
		return touch(e.Dir) // compiled while we waited
	}
	if err := os.RemoveAll(e.Dir); err != nil {
		return fmt.Errorf("removing a damaged entry of the cache: %w", err)
	}
	if err := c.compile(ctx, e.Dir, settings, module); err != nil {
		return err
	}
	return c.prune()
}

// Waiting is why nobody waits any more for another module to be compiled.
func Waiting(ctx context.Context) error {
	return fmt.Errorf("waiting for another module to be compiled: %w", context.Cause(ctx))
}

// touch makes an entry the last to be pruned.
func touch(dir string) error {
	now := time.Now()
	return os.Chtimes(dir, now, now)
}

// compile has a child fill a directory, and makes that the entry once it is whole.
func (c *Cache) compile(ctx context.Context, into, settings string, module []byte) error {
	draft, err := os.MkdirTemp(c.dir, draftPrefix)
	if err != nil {
		return fmt.Errorf("making an entry of the cache: %w", err)
	}
	defer os.RemoveAll(draft)
	job, err := json.Marshal(Job{Dir: draft, Settings: settings, Limits: c.limits})
	if err != nil {
		return err
	}
	if err := runChild(ctx, c.program, string(job), module, c.limits); err != nil {
		return err
	}
	sum, n, err := digest(draft)
	switch {
	case err != nil:
		return fmt.Errorf("the compiled module: %w", err)
	case n == 0:
		return errors.New("the compiled module: the compiler has left nothing")
	case n > c.limits.Output:
		return fmt.Errorf("the compiled module: has %d bytes, the limit is %d", n, c.limits.Output)
	}
	if err := os.WriteFile(filepath.Join(draft, sumFile), []byte(sum), 0o600); err != nil {
		return fmt.Errorf("the compiled module: %w", err)
	}
	err = os.Rename(draft, into)
	if err != nil && verify(into) == nil {
		return nil // another process was faster
	}
	return err
}
