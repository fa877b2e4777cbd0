package codecache

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// What is in the cache's directory: entries, named by their keys, and drafts,
// which children fill.
const (
	draftPrefix = "draft-"
	draftTime   = 10 * time.Minute // no compilation takes so long
	readTime    = time.Minute      // within which who was given an entry has read it
	sumFile     = "sha256"         // of an entry: digest of all else in it
)

// verify holds an entry against its digest: a damaged one is native code that
// does nobody knows what.
func verify(dir string) error {
	want, err := regular.Read(filepath.Join(dir, sumFile), 2*sha256.Size, nil)
	if err != nil {
		return err
	}
	got, _, err := digest(dir)
	if err == nil && got != string(want) {
		err = errors.New("is damaged")
	}
	return err
}

// digest hashes names and contents of all regular files but the digest's own.
func digest(dir string) (sum string, size int64, err error) {
	h := sha256.New()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == filepath.Join(dir, sumFile) {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", path)
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Fprintf(h, "%s\x00", strings.TrimPrefix(path, dir))
		n, err := io.Copy(h, f)
		size += n
		return err
	})
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// stored is an entry as pruning sees it.
type stored struct {
	key  string
	size int64
	used time.Time
}

// prune removes drafts that were left behind, and what was used longest ago, until the rest is
// within bounds. Who has loaded an entry does not need it any more: code is in memory as a copy.
// What was used a moment ago stays, since it may be about to be read. What else is in the
// directory is not ours.
func (c *Cache) prune() error {
	names, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("looking through the cache: %w", err)
	}
	var entries []stored
	for _, d := range names {
		path := filepath.Join(c.dir, d.Name())
		info, err := d.Info()
		switch _, bad := hex.DecodeString(d.Name()); {
		case err != nil || !d.IsDir(): // gone by now, or none of ours
		case strings.HasPrefix(d.Name(), draftPrefix):
			if time.Since(info.ModTime()) > draftTime {
				_ = os.RemoveAll(path) // tried again next time
			}
		case bad == nil && len(d.Name()) == 2*sha256.Size:
			entries = append(entries, stored{key: d.Name(), size: size(path), used: info.ModTime()})
		}
	}
	slices.SortFunc(entries, func(a, b stored) int { return b.used.Compare(a.used) })
	left := c.maxBytes
	for _, e := range entries {
		if left -= e.size; left >= 0 || time.Since(e.used) < readTime {
			continue
		}
		_ = os.RemoveAll(filepath.Join(c.dir, e.key)) // tried again next time
	}
	return nil
}

// size is what a directory's files hold; what vanishes meanwhile counts nothing.
func size(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return nil
	})
	return sum
}

// processor says what code can be compiled for here: the architecture, and what
// the kernel says that the processor can do.
var processor = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/cpuinfo") // without it the architecture must do
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		name, features, _ := strings.Cut(lines.Text(), ":")
		if name = strings.TrimSpace(name); name == "flags" || name == "Features" {
			return runtime.GOARCH + features
		}
	}
	return runtime.GOARCH
})
