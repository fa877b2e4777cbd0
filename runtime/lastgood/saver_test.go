package lastgood

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// keeper is a Saver that has a version of a hook server, whose file it returns.
func keeper(t *testing.T, ctx context.Context, dir string) (l *Saver, file string) {
	t.Helper()
	l = NewSaver(dir, observe.Discard())
	l.Begin(ctx, registry.Dirs{})
	go l.Run(ctx)
	l.Keep(Version{Description: registry.Description{ID: "10-a"}, Since: time.Now()})
	return l, filepath.Join(dir, "last-good", "plugins", "10-a.json")
}

// Versions that could not be saved are saved when they can be. Until then the directory's state counts as not saved.
func TestFailedSaveOfVersionsIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil { // which is not trusted
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		l, file := keeper(t, ctx, dir)
		synctest.Wait()
		time.Sleep(2 * workqueue.SaveAgain)
		synctest.Wait()
		if _, err := os.Stat(file); l.Saved() || !os.IsNotExist(err) {
			t.Errorf("saved is %v, in a directory of everyone: %v", l.Saved(), err)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * workqueue.SaveAgain)
		synctest.Wait()
		if _, err := os.Stat(file); !l.Saved() || err != nil {
			t.Errorf("saved is %v: %v", l.Saved(), err)
		}
	})
}

// A process is taken for crashed at its start if it neither ended nor served for a while.
func TestCrashAtTheStartIsNoticed(t *testing.T) {
	for name, lives := range map[string]func(ctx context.Context, l *Saver){
		"it crashed at once": func(context.Context, *Saver) {},
		"it crashed later":   func(context.Context, *Saver) { time.Sleep(2 * survivalTime) },
		"it ended":           func(ctx context.Context, l *Saver) { l.Close(ctx) },
		"it crashed at once, and the next one could not listen": func(ctx context.Context, l *Saver) { NewSaver(l.dir, observe.Discard()).Close(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				l, _ := keeper(t, ctx, dir)
				synctest.Wait()
				lives(ctx, l)
				synctest.Wait()
				if _, crashed := NewSaver(dir, observe.Discard()).Begin(ctx, registry.Dirs{}); crashed != strings.HasPrefix(name, "it crashed at once") {
					t.Errorf("crashed is %v", crashed)
				}
			})
		})
	}
}
