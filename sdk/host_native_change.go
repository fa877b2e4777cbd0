//go:build !(wasip1 || tinygo.wasm)

package sdk

import (
	"strconv"
	"strings"
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

func hostSetI64(o abi.Object, f abi.Field, v int64) int32 {
	return change(o, f, abi.Int64, "", FormatInt(v))
}

func hostSetBytes(o abi.Object, f abi.Field, v string) int32 { return change(o, f, abi.String, "", v) }

func hostMapSet(o abi.Object, f abi.Field, key, v string) int32 {
	return change(o, f, abi.Map, strconv.Quote(key), v)
}

func hostMapDel(o abi.Object, f abi.Field, key string) int32 {
	return hostMapSet(o, f, key, native.Deleted)
}

func hostListSet(o abi.Object, f abi.Field, list string) int32 {
	return change(o, f, abi.List, "", host().JSON(append([]string{}, elements(list)...)))
}

// hostListAdd adds an element, which goes by a key of its record if it is one.
func hostListAdd(o abi.Object, f abi.Field, element string) int32 {
	info, _ := abi.FieldOf(o, f)
	if keys := info.RecordKeys(); keys != nil {
		record := map[string]string{}
		abi.EachEntry(element, func(k, v string) bool { record[k] = v; return true })
		return change(o, f, abi.Set, strconv.Quote(record[keys[0]]), host().JSON(record))
	}
	return change(o, f, abi.Set, strconv.Quote(element), "true")
}

func hostListDel(o abi.Object, f abi.Field, key string) int32 {
	return change(o, f, abi.Set, strconv.Quote(key), native.Deleted)
}

// change notes a change of a field, or of one of its keys, which is quoted.
func change(o abi.Object, f abi.Field, t abi.Type, key, v string) int32 {
	kind := o
	if of := object(o); of != nil {
		kind = of.Kind
	}
	info, ok := abi.FieldOf(kind, f)
	switch {
	case !ok:
		return int32(abi.NotFound)
	case info.Type != t || key == `""`:
		return int32(abi.Invalid)
	}
	target, errno := "."+info.Name, abi.OK
	if key != "" {
		target += "[" + key + "]"
	}
	switch {
	case info.Format == abi.KeysOfPlugins && strings.HasPrefix(key, `"io.kubernetes.`):
		errno = abi.Denied // kubelet's
	case info.Format == abi.CgroupFiles && host().Cgroup != 2, o >= abi.FirstHandle && v == native.Deleted:
		errno = abi.Unsupported
	case t == abi.Int64 && !inRange(info.Format, v):
		errno = abi.Invalid
	case t == abi.Int64 && o == abi.Container && abovePod(f, v):
		switch {
		case host().Cgroup == 1:
			errno = abi.Unsupported
		case lacks(abi.PodLimits):
			errno = abi.Denied
		}
	}
	return ask(o, target, v, info.Writing, info.Writable, abi.HandleWritable(info), errno)
}

func inRange(f abi.Format, v string) bool {
	n, _ := ParseInt(v)
	least, most, unlimited := f.Range()
	if most == 0 || n == -1 && unlimited {
		return true
	}
	return n >= least && n <= most
}

// abovePod reports whether a CPU quota or memory limit of the container is above what the test
// says of the pod's cgroup.
func abovePod(f abi.Field, v string) bool {
	file, period := "memory.max", int64(1)
	switch f {
	case abi.Resources + abi.CPUQuota:
		file, period = "cpu.max", 100_000
		if own, errno := field[int64](abi.Container, abi.Resources+abi.CPUPeriod); errno == abi.OK && own > 0 {
			period = own
		}
	case abi.Resources + abi.MemoryLimit:
	default:
		return false
	}
	text, ofEvent := host().Files[abi.Pod.String()][file]
	if pod := host().Objects[abi.Pod]; pod != nil && !ofEvent {
		text = host().Files[pod.ID()][file]
	}
	amount, per, _ := strings.Cut(text, " ")
	n, _ := ParseInt(v)
	most, finite := ParseInt(amount)
	each, given := ParseInt(per)
	if !given {
		each = 1
	}
	return finite && float64(n)*float64(each) > float64(most)*float64(period)
}

func hostCgroupSet(o abi.Object, file, v string) int32 {
	if host().Cgroup == 0 {
		return int32(abi.Unsupported)
	}
	return ask(o, " cgroup file "+file, v, abi.CgroupWrite, abi.CgroupWritable(o), object(o) != nil, abi.OK)
}

func hostWithdraw(o abi.Object, f abi.Field, key string) int32 {
	kind := o
	if of := object(o); of != nil {
		kind = of.Kind
	}
	target, needs, hooks, handles := " cgroup file "+key, abi.CgroupWrite, abi.CgroupWritable(o), object(o) != nil
	if f != 0 {
		info, ok := abi.FieldOf(kind, f)
		keyed := info.Type == abi.Map || info.Type == abi.Set
		switch {
		case !ok:
			return int32(abi.NotFound)
		case keyed != (key != ""):
			return int32(abi.Invalid)
		}
		target, needs, hooks, handles = "."+info.Name, info.Writing, info.Writable, abi.HandleWritable(info)
		if keyed {
			target += "[" + strconv.Quote(key) + "]"
		}
	}
	name, errno := allowed(o, needs, hooks, handles)
	if errno != abi.OK {
		return int32(errno)
	}
	delete(host().Changes, name+target)
	held := heldAs(o, target)
	if delete(host().Holds, held); host().Held[held] {
		host().Changes[name+target] = native.Withdrawn
	}
	return 0
}

func hostConflict(buf unsafe.Pointer, size int32) int32 {
	return answer(buf, size, "earlier", foundIf(host().Conflict, 0))
}

// heldAs is the name of a target that outlives a call; "" of others.
func heldAs(o abi.Object, target string) string {
	of := object(o)
	lasts := strings.HasPrefix(target, " cgroup file ") || strings.HasPrefix(target, ".resources.")
	if of == nil || !lasts {
		return ""
	}
	return of.Kind.String() + "(" + of.ID() + ")" + target
}

// ask notes a change of an object: of the event's own in these hooks, and on a handle where
// it may be and the call is not about the same object. errno tells what is wrong with the
// change itself.
func ask(o abi.Object, target, v string, needs abi.Capability, hooks abi.HookSet, handles bool, errno abi.Errno) int32 {
	name, forbidden := allowed(o, needs, hooks, handles)
	first, taken := host().Earlier[name+target]
	switch {
	case forbidden != abi.OK:
		return int32(forbidden)
	case errno == abi.OK && taken && first != v:
		host().Conflict = true
		return int32(abi.Conflict)
	case errno == abi.OK:
		host().Changes[name+target] = v
		if held := heldAs(o, target); held != "" {
			host().Holds[held] = true
		}
	}
	return int32(errno)
}

// allowed names an object, and tells why the plugin may not change it.
func allowed(o abi.Object, needs abi.Capability, hooks abi.HookSet, handles bool) (name string, errno abi.Errno) {
	name, writable := o.String(), hooks.Has(host().Hook)
	if of := object(o); o >= abi.FirstHandle && of != nil {
		switch host().Hook.Info().Phase {
		case abi.BeforeNoReject:
			writable = false
		case abi.Before:
			writable = handles && !of.Own
		default:
			writable = handles
		}
		name = of.Kind.String() + "(" + of.ID() + ")"
	}
	switch {
	case lacks(needs) || o >= abi.FirstHandle && lacks(abi.UpdateOthers):
		return name, abi.Denied
	case !writable:
		return name, abi.ReadOnly
	}
	return name, abi.OK
}
