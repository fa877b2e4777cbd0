package sdktest

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

// host is the other side of one call.
type host struct {
	*guest
	plugin.Event
	adj    *plugin.Adjustment
	has    abi.CapabilitySet
	draft  *plugin.Draft
	random *rand.ChaCha8 // nil until it is asked
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
		return errors.New(h.adj.WhyRefused(h.reason, abi.Errno(result)))
	case result == abi.Reject:
		return h.adj.Rejection()
	}
	return nil
}

// permit answers whether the plugin may call a function.
func (h *host) permit(needs abi.Capability) abi.Errno {
	if h.has.Has(needs) {
		return abi.OK
	}
	return abi.Denied
}

// readable answers whether the plugin may read a field.
func (h *host) readable(o abi.Object, f abi.Field) abi.Errno {
	info, _ := abi.FieldOf(h.Kind(o), f)
	return h.permit(info.Reading)
}

// answer writes v to buf if it fits, and returns its length.
func answer[T string | []byte](buf []byte, v T, errno abi.Errno) int32 {
	if errno != abi.OK {
		return int32(errno)
	}
	if len(v) <= len(buf) {
		copy(buf, v)
	}
	return int32(len(v))
}

func (h *host) Get(o abi.Object, f abi.Field, buf []byte) int32 {
	v, errno := h.Text(o, f)
	return answer(buf, v, errno)
}

func (h *host) GetI64(o abi.Object, f abi.Field, out []byte) int32 {
	v, errno := h.Int64(o, f)
	if errno == abi.OK {
		binary.LittleEndian.PutUint64(out, uint64(v))
	}
	return int32(errno)
}

func (h *host) MapGet(o abi.Object, f abi.Field, key string, buf []byte) int32 {
	if errno := h.readable(o, f); errno != abi.OK {
		return int32(errno)
	}
	v, errno := h.Lookup(o, f, key)
	return answer(buf, v, errno)
}

func (h *host) MapDump(o abi.Object, f abi.Field, buf []byte) int32 {
	if errno := h.readable(o, f); errno != abi.OK {
		return int32(errno)
	}
	entries, errno := h.Entries(o, f)
	if errno != abi.OK {
		return int32(errno)
	}
	return answer(buf, abi.AppendEntries(nil, entries), abi.OK)
}

func (h *host) ListDump(o abi.Object, f abi.Field, buf []byte) int32 {
	list, errno := h.List(o, f)
	return answer(buf, abi.AppendList(nil, list), errno)
}

func (h *host) CRIRaw(buf []byte) int32 {
	if errno := h.permit(abi.ReadRaw); errno != abi.OK {
		return int32(errno)
	}
	v, errno := h.Raw(h.has)
	return answer(buf, v, errno)
}

func (h *host) CgroupGet(o abi.Object, file string, buf []byte) int32 {
	if errno := h.permit(abi.CgroupRead); errno != abi.OK {
		return int32(errno)
	}
	v, errno := h.ReadFile(context.Background(), o, file)
	return answer(buf, v, errno)
}

func (h *host) PodFind(kind int32, name string) int32 {
	if errno := h.permit(abi.StoreRead); errno != abi.OK {
		return int32(errno)
	}
	handle, errno := h.Find(kind, name)
	if errno != abi.OK {
		return int32(errno)
	}
	return int32(handle)
}

func (h *host) PodList(namespace string, buf []byte) int32 {
	return h.handles(buf, func() ([]abi.Object, abi.Errno) { return h.Pods(namespace) })
}

func (h *host) ContainerList(pod abi.Object, buf []byte) int32 {
	return h.handles(buf, func() ([]abi.Object, abi.Errno) { return h.Containers(pod) })
}

func (h *host) handles(buf []byte, find func() ([]abi.Object, abi.Errno)) int32 {
	if errno := h.permit(abi.StoreRead); errno != abi.OK {
		return int32(errno)
	}
	found, errno := find()
	var list []byte
	for _, handle := range found {
		list = binary.LittleEndian.AppendUint32(list, uint32(handle))
	}
	return answer(buf, list, errno)
}

func (h *host) SetI64(o abi.Object, f abi.Field, v int64) int32 {
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

func (h *host) ListSet(o abi.Object, f abi.Field, list string) int32 {
	var elements []string
	if !abi.EachElement(list, func(e string) bool { elements = append(elements, e); return true }) {
		return int32(abi.Invalid)
	}
	return code(h.adj.SetList(o, f, elements))
}

func (h *host) ListAdd(o abi.Object, f abi.Field, element string) int32 {
	return code(h.adj.AddElement(o, f, element))
}

func (h *host) ListDel(o abi.Object, f abi.Field, key string) int32 {
	return code(h.adj.DeleteElement(o, f, key))
}

func (h *host) CgroupSet(o abi.Object, file, v string) int32 {
	if errno := h.permit(abi.CgroupWrite); errno != abi.OK {
		return int32(errno)
	}
	return code(h.adj.WriteFile(o, file, v))
}

func (h *host) Reject(c int32, reason string) int32 { return code(h.adj.Reject(uint32(c), reason)) }

func code(err error) int32 { return int32(plugin.ErrnoOf(err)) }

func (h *host) Fail(reason string)  { h.reason = reason }
func (h *host) Abort(reason string) { panic("sdktest: the plugin aborted: " + reason) }

func (h *host) Config(buf []byte) int32 { return answer(buf, h.guest.Config, abi.OK) }

var levels = [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

func (h *host) Log(level int32, message string) {
	level = min(max(level, abi.LogDebug), abi.LogError)
	h.guest.Log.Log(context.Background(), levels[level], message)
}

func (h *host) LogLevel() int32 {
	for i, level := range levels {
		if h.guest.Log.Enabled(context.Background(), level) {
			return int32(i)
		}
	}
	return abi.LogError + 1
}

func (h *host) Metric(kind int32, name string, v int64) int32 {
	if errno := h.permit(abi.WriteMetric); errno != abi.OK {
		return int32(errno)
	}
	return int32(h.Metrics.Update(kind, name, v))
}

func (h *host) KVGet(key string, buf []byte) int32 {
	if errno := h.permit(abi.StateKV); errno != abi.OK {
		return int32(errno)
	}
	v, errno := h.draft.Get(key)
	return answer(buf, v, errno)
}

func (h *host) KVSet(key, v string) int32 {
	if errno := h.keeps(); errno != abi.OK {
		return int32(errno)
	}
	return int32(h.draft.Set(key, v))
}

func (h *host) KVDel(key string) int32 {
	errno := h.keeps()
	if errno == abi.OK {
		h.draft.Delete(key)
	}
	return int32(errno)
}

// keeps answers whether the plugin may write to its kv: not before the first event.
func (h *host) keeps() abi.Errno {
	if errno := h.permit(abi.StateKV); errno != abi.OK {
		return errno
	}
	if h.Hook() == 0 {
		return abi.ReadOnly
	}
	return abi.OK
}

func (h *host) Now() int64 { return h.Time().UnixNano() }

const maxRandom = 256

// Random follows from the event alone, as on a node; the numbers are others there.
func (h *host) Random(buf []byte) int32 {
	if len(buf) > maxRandom {
		return int32(abi.TooLarge)
	}
	if h.random == nil {
		seed := fnv.New128a()
		uid, _ := h.Text(abi.Pod, abi.PodUID)
		name, _ := h.Text(abi.Container, abi.ContainerName)
		seed.Write(binary.LittleEndian.AppendUint64([]byte{byte(h.Hook())}, uint64(h.Now())))
		seed.Write([]byte(uid + "\x00" + name))
		h.random = rand.NewChaCha8([32]byte(append(seed.Sum(nil), make([]byte, 16)...)))
	}
	h.random.Read(buf)
	return 0
}

func (h *host) Feature(f abi.Feature) int32 {
	if slices.Contains(h.Features, f) {
		return 1
	}
	return 0
}
