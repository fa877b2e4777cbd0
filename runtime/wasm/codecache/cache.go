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
	MaxBytes int64  // what the directory may hold; what was used a moment ago stays in any case; 0 is DefaultMaxBytes
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
}

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
		limits:  Limits{cmp.Or(l.Memory, d.Memory), cmp.Or(l.CPU, d.CPU), cmp.Or(l.Wall, d.Wall), cmp.Or(l.Output, d.Output)},
		program: cmp.Or(o.Program, "/proc/self/exe"), // also when the file was replaced by another version
	}
	return c, c.prune()
}

// Get returns the directory of a module's code, compiled with these settings: what a child has
// written is there, in the child's own layout. A child is started if there is none, or one that is
// damaged. settings are all that the result depends on beside the module and the processor; the
// child gets them as they are. The caller reads the code within readTime: it may be pruned then.
func (c *Cache) Get(ctx context.Context, settings string, module []byte) (dir string, err error) {
	dir = c.entry(settings, module)
	touch(dir)
	if verify(dir) == nil {
		return dir, nil
	}
	if err := c.compile(ctx, dir, settings, module); err != nil {
		return "", err
	}
	return dir, c.prune()
}

// Find is Get for code that is there already. The error is ErrNotCached if it is
// not, or is damaged.
func (c *Cache) Find(settings string, module []byte) (dir string, err error) {
	dir = c.entry(settings, module)
	touch(dir)
	if verify(dir) != nil {
		return "", ErrNotCached
	}
	return dir, nil
}

// entry is the directory of a module's code, named by the module, the settings and this processor.
func (c *Cache) entry(settings string, module []byte) string {
	h := sha256.New()
	for _, part := range []string{processor(), settings} { // code is compiled for what the processor can do
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	h.Write(module)
	return filepath.Join(c.dir, hex.EncodeToString(h.Sum(nil)))
}

// touch makes an entry the last to be pruned, before it is looked at: another process may be pruning. It fails if there is
// no entry, and on a read-only file system, where nothing is pruned.
func touch(dir string) {
	now := time.Now()
	_ = os.Chtimes(dir, now, now)
}

// compile has a child fill a directory, and makes that the entry once it is whole.
func (c *Cache) compile(ctx context.Context, into, settings string, module []byte) error {
	err := os.MkdirAll(c.dir, 0o700) // somebody may have removed it
	var draft string
	if err == nil {
		draft, err = os.MkdirTemp(c.dir, draftPrefix)
	}
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
	if err := os.Rename(draft, into); err == nil || verify(into) == nil { // another may have been faster
		return nil
	}
	if err := os.RemoveAll(into); err != nil {
		return fmt.Errorf("removing a damaged entry of the cache: %w", err)
	}
	return os.Rename(draft, into)
}
