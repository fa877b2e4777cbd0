package daemon

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Durable values that could not be saved are saved when they can be, though none changes.
func TestFailedSaveOfDurableValuesIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, err := openDurable(&config.Config{StateDir: dir}, observe.Discard())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go d.run(ctx)
		defer func() {
			stop()
			if err := d.close(); err != nil {
				t.Error(err)
			}
		}()
		file := dir + "/kv/10-a.json"
		if err := os.Mkdir(file, 0o700); err != nil { // a file cannot replace it
			t.Fatal(err)
		}
		kv := plugin.NewKV()
		d.keep(ctx, "10-a", kv, []string{""})
		txn := kv.Begin()
		txn.Set("key", "value")
		if err := txn.Commit(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * saveAgain)
		synctest.Wait()
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * saveAgain)
		synctest.Wait()
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			t.Errorf("the values are not saved: %v, %v", info, err)
		}
	})
}
