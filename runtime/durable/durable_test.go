package durable

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/workqueue"
)

// Durable values that could not be saved are saved when they can be, though none changes.
func TestFailedSaveOfDurableValuesIsTriedAgain(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(dir, observe.Discard())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go d.Run(ctx)
		defer func() {
			stop()
			d.Close()
		}()
		file := dir + "/kv/10-a.json"
		if err := os.Mkdir(file, 0o700); err != nil { // a file cannot replace it
			t.Fatal(err)
		}
		kv := plugin.NewKV()
		d.Keep(ctx, "10-a", kv, []string{""})
		txn := kv.Begin()
		txn.Set("key", "value")
		if err := txn.Commit(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * workqueue.SaveAgain)
		synctest.Wait()
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * workqueue.SaveAgain)
		synctest.Wait()
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			t.Errorf("the values are not saved: %v, %v", info, err)
		}
	})
}

// The file of a plugin that has gone is removed in the background. A plugin that comes with its ID before that begins without
// values, and the removal does not take its own.
func TestPluginThatComesBackBeforeItsFileIsRemoved(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(dir, observe.Discard())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go s.Run(ctx)
		defer func() {
			stop()
			s.Close()
		}()
		there := map[string]bool{"10-a": true, "20-b": true}
		comes := func(id, value string) {
			t.Helper()
			kv := plugin.NewKV()
			s.Restore(ctx, id, kv)
			s.Keep(ctx, id, kv, []string{""})
			if values, _ := kv.Durable(-1); len(values) > 0 {
				t.Errorf("%s comes with %v", id, values)
			}
			txn := kv.Begin()
			txn.Set("key", value)
			if err := txn.Commit(); err != nil {
				t.Fatal(err)
			}
		}
		has := func(id string, want string) {
			t.Helper()
			time.Sleep(2 * saveDelay)
			synctest.Wait()
			values, err := s.read(id + suffix)
			if want == "" && !errors.Is(err, fs.ErrNotExist) || values["key"] != want {
				t.Errorf("%s has %v, %v; want %q", id, values, err, want)
			}
		}
		s.Forget(there)
		comes("10-a", "first")
		comes("20-b", "other")
		has("10-a", "first")
		s.Forget(map[string]bool{"20-b": true})
		s.Forget(there)
		comes("10-a", "second")
		has("10-a", "second")
		has("20-b", "other")
		s.Forget(map[string]bool{"20-b": true})
		has("10-a", "")
		s.Forget(there)
		comes("10-a", "third")
		s.Forget(there) // before its file is written
		has("10-a", "third")
		s.Forget(there)
		has("10-a", "third")
		if err := os.MkdirAll(dir+"/kv/30-c.json/full", 0o700); err != nil { // which cannot be removed, so that it is tried again
			t.Fatal(err)
		}
		s.Forget(map[string]bool{"20-b": true})
		has("10-a", "")
		s.Forget(there)
		comes("10-a", "fourth")
		has("10-a", "fourth")
		time.Sleep(2 * workqueue.SaveAgain)
		has("10-a", "fourth")
	})
}

// Somebody has removed the state directory. When it is there again, all values are saved in it, though only one has changed.
func TestStateDirectoryThatComesBack(t *testing.T) {
	dir := t.TempDir() + "/state"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(dir, observe.Discard())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go s.Run(ctx)
		defer func() {
			stop()
			s.Close()
		}()
		all := map[string]*plugin.KV{"10-a": plugin.NewKV(), "20-b": plugin.NewKV()}
		set := func(id string) {
			txn := all[id].Begin()
			txn.Set("key", "value")
			if err := txn.Commit(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * workqueue.SaveAgain)
			synctest.Wait()
		}
		for id, kv := range all {
			s.Keep(ctx, id, kv, []string{""})
		}
		set("10-a")
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		set("20-b")
		if s.Saved() {
			t.Error("the values count as saved without the directory")
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * workqueue.SaveAgain)
		synctest.Wait()
		for id := range all {
			if values, err := s.read(id + suffix); values["key"] != "value" || !s.Saved() {
				t.Errorf("of %s there is %v, %v; saved %v", id, values, err, s.Saved())
			}
		}
	})
}
