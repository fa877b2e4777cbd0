package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/wasmproxy/wasmproxy/abi"
)

type eventKey struct{}

// call is one call of a guest: its event, its memory, and the arguments of the host function that it calls.
type call struct {
	event  *event
	memory api.Memory
	args   []uint64
	calls  int
}

// function serves a host function. Its result is the guest's.
type function func(c *call) int64

// counted is a function as the engine calls it. A guest that calls too many ends.
func counted(f function) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		c := ctx.Value(eventKey{}).(*call)
		if c.calls++; c.calls > 1000 {
			panic(errors.New("too many calls of host functions"))
		}
		c.memory, c.args = m.Memory(), slices.Clone(stack)
		if result := f(c); len(stack) > 0 { // also of a function without a result, which leaves it
			stack[0] = api.EncodeI64(result)
		}
	}
}

// absent answers for a function that this host does not have.
func absent(*call) int64 { return int64(abi.Unsupported) }

func (c *call) i32(i int) int32 { return api.DecodeI32(c.args[i]) }

// in is the text whose pointer and length are arguments i and i+1. One outside of memory is a trap.
func (c *call) in(i int) string {
	n := uint32(c.args[i+1])
	if n == 0 {
		return ""
	}
	b, ok := c.memory.Read(uint32(c.args[i]), n)
	if !ok {
		panic(fmt.Errorf("%d bytes at %#x are outside of memory", n, uint32(c.args[i])))
	}
	return string(b)
}

// out writes an answer into the buffer whose pointer and size are arguments i and i+1, if it fits.
func (c *call) out(i int, answer []byte, errno abi.Errno) int64 {
	c.in(i) // a trap whatever is written
	if errno != abi.OK {
		return int64(errno)
	}
	if uint32(len(answer)) <= uint32(c.args[i+1]) && len(answer) > 0 {
		c.memory.Write(uint32(c.args[i]), answer)
	}
	return int64(len(answer))
}

func (c *call) find(types ...abi.Type) (abi.FieldInfo, any, abi.Errno) {
	return c.event.find(abi.Object(c.i32(0)), abi.Field(c.i32(1)), types...)
}

// set makes a change of the field in arguments 0 and 1.
func (c *call) set(op abi.Type, key string, value any, size int) int64 {
	if c.event.hook == 0 { // before the first event
		return int64(abi.ReadOnly)
	}
	return int64(c.event.set(abi.Object(c.i32(0)), abi.Field(c.i32(1)), op, key, value, size))
}

// functions are those of the core.
var functions = map[string]function{
	"get": func(c *call) int64 {
		_, v, errno := c.find(abi.String)
		s, _ := v.(string)
		return c.out(2, []byte(s), errno)
	},
	"get_i64": func(c *call) int64 {
		place, ok := c.memory.Read(uint32(c.args[2]), 8)
		if !ok {
			panic(errors.New("the place is outside of memory"))
		}
		_, v, errno := c.find(abi.Int64)
		if errno == abi.OK {
			n, _ := strconv.ParseInt(fmt.Sprint(v), 10, 64)
			binary.LittleEndian.PutUint64(place, uint64(n))
		}
		return int64(errno)
	},
	"map_get": func(c *call) int64 {
		key := c.in(2)
		_, v, errno := c.find(abi.Map)
		m, _ := v.(map[string]any)
		s, there := m[key].(string)
		if errno == abi.OK && !there {
			errno = abi.NotFound
		}
		return c.out(4, []byte(s), errno)
	},
	"map_dump": func(c *call) int64 {
		_, v, errno := c.find(abi.Map)
		keys, values := entries(v)
		return c.out(2, abi.AppendEntries(nil, func(yield func(k, v string) bool) {
			for i, key := range keys {
				if !yield(key, values[i]) {
					return
				}
			}
		}), errno)
	},
	"list_dump": func(c *call) int64 {
		info, v, errno := c.find(abi.List, abi.Set)
		return c.out(2, abi.AppendList(nil, elements(info, v)), errno)
	},
	"set_i64": func(c *call) int64 {
		return c.set(abi.Int64, "", json.Number(strconv.FormatInt(int64(c.args[2]), 10)), 0)
	},
	"set_bytes": func(c *call) int64 { s := c.in(2); return c.set(abi.String, "", s, len(s)) },
	"map_set": func(c *call) int64 {
		key, s := c.in(2), c.in(4)
		return c.set(abi.Map, key, s, len(key)+len(s))
	},
	"map_del":  func(c *call) int64 { key := c.in(2); return c.set(abi.Map, key, nil, len(key)) },
	"list_set": func(c *call) int64 { s := c.in(2); return c.set(abi.List, "", s, len(s)) },
	"list_add": func(c *call) int64 {
		s := c.in(2)
		info, _ := abi.FieldOf(abi.Object(c.i32(0)), abi.Field(c.i32(1)))
		keys := info.RecordKeys()
		if keys == nil {
			return c.set(abi.Set, s, true, len(s))
		}
		values, _ := record(keys, s)
		key, _ := values["container_path"].(string)
		if _, ok := record(keys, s); !ok {
			key = "" // which no set takes
		}
		return c.set(abi.Set, key, values, len(s))
	},
	"list_del": func(c *call) int64 { key := c.in(2); return c.set(abi.Set, key, nil, len(key)) },
	"withdraw": func(c *call) int64 {
		key := c.in(2)
		if c.event.hook == 0 { // before the first event
			return int64(abi.ReadOnly)
		}
		return int64(c.event.withdraw(abi.Object(c.i32(0)), abi.Field(c.i32(1)), key))
	},
	"conflict": func(c *call) int64 {
		errno := abi.NotFound
		if c.event.conflict {
			errno = abi.OK
		}
		return c.out(0, []byte("earlier"), errno)
	},
	"reject": func(c *call) int64 {
		reason, code := c.in(1), c.i32(0)
		if code == 0 {
			code = abi.RejectFailedPrecondition
		}
		known := slices.Contains([]int32{3, 7, 8, 9}, code)
		if !known || c.event.hook.Info().Phase != abi.Before {
			return int64(abi.Invalid)
		}
		c.event.code, c.event.reason, c.event.refused = code, reason, true
		return 0
	},
	"fail":      func(c *call) int64 { c.event.reason = c.in(0); return 0 },
	"abort":     func(c *call) int64 { panic(errors.New("aborted: " + c.in(0))) },
	"config":    func(c *call) int64 { return c.out(0, []byte(c.event.config), abi.OK) },
	"log":       func(c *call) int64 { c.event.logLine(c.i32(0), c.in(1)); return 0 },
	"log_level": func(*call) int64 { return abi.LogDebug },
	"now":       func(c *call) int64 { return c.event.time },
	"random": func(c *call) int64 {
		place := c.in(0)
		sum := fnv.New64a()
		fmt.Fprint(sum, c.event.time, c.event.hook, c.event.objects[abi.Pod]["uid"], c.event.objects[abi.Container]["name"], c.calls)
		numbers := rand.New(rand.NewPCG(sum.Sum64(), 1))
		for i := range len(place) {
			c.memory.WriteByte(uint32(c.args[0])+uint32(i), byte(numbers.Uint32()))
		}
		return 0
	},
	"feature": func(*call) int64 { return 0 }, // those are of groups that this host does not serve
}

func (e *event) logLine(level int32, text string) {
	name := []string{"debug", "info", "warn", "error"}[min(max(level, 0), 3)]
	e.log = append(e.log, name+": "+strings.ReplaceAll(text, "\n", " "))
}
