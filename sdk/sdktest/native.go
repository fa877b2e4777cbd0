package sdktest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

// Native returns the plugin that the package under test has registered with
// package sdk, with this configuration. What it logs goes to log, which may be
// nil. A configuration that the plugin refuses fails the test.
func Native(t testing.TB, config string, log *slog.Logger) plugin.Plugin {
	t.Helper()
	p, err := load(config, log)
	if err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	return p
}

// Configure tells what the plugin under test says to a configuration.
func Configure(config string) error {
	_, err := load(config, nil)
	return err
}

func load(config string, log *slog.Logger) (*guest, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	g := &guest{config: config, log: log}
	if native.Guest.Hook == nil {
		return nil, errors.New("no package of this test imports sdk")
	}
	h := &host{guest: g, Event: &event{}, adj: plugin.NewAdjustment(0, nil)}
	var text []byte
	result := h.run(func() int32 {
		text = native.Guest.Manifest()
		return native.Guest.Configure()
	})
	if err := json.Unmarshal(text, &g.manifest); err != nil {
		return nil, fmt.Errorf("manifest %s: %w", text, err)
	}
	return g, h.verdict(result)
}

// guest is the plugin under test.
type guest struct {
	config   string
	log      *slog.Logger
	manifest abi.Manifest
}

func (g *guest) Manifest() abi.Manifest { return g.manifest }

func (g *guest) Close(context.Context) error { return nil }

func (g *guest) Call(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
	h := &host{guest: g, Event: ev, adj: adj}
	return h.verdict(h.run(func() int32 { return native.Guest.Hook(ev.Hook()) }))
}

// host is the other side of one call.
type host struct {
	*guest
	plugin.Event
	adj    *plugin.Adjustment
	reason string
}

// running is held while a plugin runs: package sdk serves one call at a time,
// as a guest does.
var running sync.Mutex

func (h *host) run(f func() int32) int32 {
	running.Lock()
	defer running.Unlock()
	native.Current = h
	defer func() { native.Current = nil }()
	return f()
}

// verdict turns the result of an export into an error.
func (h *host) verdict(result int32) error {
	switch {
	case result < 0:
		return errors.New(h.reason)
	case result == abi.Reject:
		return h.adj.Rejection()
	}
	return nil
}

func (h *host) Get(o abi.Object, f abi.Field, buf []byte) int32 {
	v, errno := h.Text(o, f)
	return answer(buf, v, errno)
}

func (h *host) GetInt64(o abi.Object, f abi.Field) (int64, abi.Errno) { return h.Int64(o, f) }

func (h *host) MapGet(o abi.Object, f abi.Field, key string, buf []byte) int32 {
	v, errno := h.Lookup(o, f, key)
	return answer(buf, v, errno)
}

func (h *host) MapDump(o abi.Object, f abi.Field, buf []byte) int32 {
	entries, errno := h.Entries(o, f)
	if errno != abi.OK {
		return int32(errno)
	}
	dump, count := make([]byte, 4), uint32(0)
	for k, v := range entries {
		dump = append(binary.LittleEndian.AppendUint32(dump, uint32(len(k))), k...)
		dump = append(binary.LittleEndian.AppendUint32(dump, uint32(len(v))), v...)
		count++
	}
	binary.LittleEndian.PutUint32(dump, count)
	return answer(buf, string(dump), abi.OK)
}

func (h *host) PodFind(kind int32, name string) int32 {
	handle, errno := h.Find(kind, name)
	if errno != abi.OK {
		return int32(errno)
	}
	return int32(handle)
}

func (h *host) ContainerList(pod abi.Object, buf []byte) int32 {
	handles, errno := h.Containers(pod)
	var list []byte
	for _, handle := range handles {
		list = binary.LittleEndian.AppendUint32(list, uint32(handle))
	}
	return answer(buf, string(list), errno)
}

// answer writes v to buf if it fits, and returns its length.
func answer(buf []byte, v string, errno abi.Errno) int32 {
	if errno != abi.OK {
		return int32(errno)
	}
	if len(v) <= len(buf) {
		copy(buf, v)
	}
	return int32(len(v))
}

func (h *host) SetInt64(o abi.Object, f abi.Field, v int64) int32 {
	return code(h.adj.SetInt64(o, f, v))
}

func (h *host) SetBytes(o abi.Object, f abi.Field, v string) int32 {
	return code(h.adj.SetText(o, f, v))
}

func (h *host) MapSet(o abi.Object, f abi.Field, key, v string) int32 {
	return code(h.adj.SetEntry(o, f, key, v))
}

func (h *host) MapDel(o abi.Object, f abi.Field, key string) int32 {
	return code(h.adj.DeleteEntry(o, f, key))
}

func (h *host) CgroupSet(o abi.Object, file, v string) int32 {
	return code(h.adj.WriteFile(o, file, v))
}

func (h *host) Reject(c int32, reason string) int32 { return code(h.adj.Reject(uint32(c), reason)) }

func code(err error) int32 { return int32(plugin.ErrnoOf(err)) }

func (h *host) Fail(reason string)  { h.reason = reason }
func (h *host) Abort(reason string) { panic("sdktest: the plugin aborted: " + reason) }
func (h *host) Config(buf []byte) int32 {
	return answer(buf, h.config, abi.OK)
}
func (h *host) Now() int64 { return h.Time().UnixNano() }

var levels = [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

func (h *host) Log(level int32, message string) {
	h.log.Log(context.Background(), levels[level], message)
}
