package remote_test

import (
	"iter"
	"slices"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// field is a field of an object.
type field struct {
	object abi.Object
	field  abi.Field
}

type entry struct{ key, value string }

// event is a plugin.Subject that holds what a test puts into it.
type event struct {
	plugin.NoEvent
	hook    abi.Hook
	numbers map[field]int64
	texts   map[field]string
	entries map[field][]entry
}

var _ plugin.Subject = (*event)(nil)

// Secrets are the environment's values.
func (e *event) Secrets(abi.CapabilitySet, int) (values []string, next int) {
	for _, v := range e.entries[field{abi.Container, abi.ContainerEnv}] {
		values = append(values, v.value)
	}
	return values, 1
}

// newEvent returns an event about a container with something in every field
// that hook servers are sent, and in env what they cannot be sent.
func newEvent(hook abi.Hook) *event {
	pod := func(f abi.Field) field { return field{abi.Pod, f} }
	container := func(f abi.Field) field { return field{abi.Container, f} }
	return &event{
		hook: hook,
		numbers: map[field]int64{
			pod(abi.PodAttempt):              2,
			pod(abi.Overhead + abi.CPUQuota): 5000, pod(abi.Resources + abi.CPUShares): 512,
			container(abi.ContainerAttempt):            3,
			container(abi.Resources + abi.CPUPeriod):   100000,
			container(abi.Resources + abi.CPUQuota):    20000,
			container(abi.Resources + abi.CPUShares):   204,
			container(abi.Resources + abi.MemoryLimit): 1 << 30,
			container(abi.Resources + abi.OOMScoreAdj): 900,
			container(abi.Resources + abi.MemorySwap):  2 << 30,
		},
		texts: map[field]string{
			pod(abi.PodName): "web-0", pod(abi.PodNamespace): "shop", pod(abi.PodUID): "uid-1",
			pod(abi.PodRuntimeHandler): "kata", pod(abi.PodCgroupParent): "/kubepods/pod1",
			container(abi.ContainerName): "app", container(abi.ContainerID): "c1",
			container(abi.Resources + abi.CpusetCpus): "0-1", container(abi.Resources + abi.CpusetMems): "0",
		},
		entries: map[field][]entry{
			pod(abi.PodLabels):                            {{"app", "web"}},
			pod(abi.PodAnnotations):                       {{"example.com/tier", "gold"}, {"io.kubernetes.source", "api"}},
			container(abi.ContainerAnnotations):           {{"io.kubernetes.restartCount", "3"}},
			container(abi.ContainerEnv):                   {{"PATH", "/first"}, {"KEY", "\xff\xfe"}, {"PATH", "/bin"}, {"LAST", "ok"}, {"LAST", "\xc0"}, {"EMPTY", ""}},
			container(abi.Resources + abi.HugepageLimits): {{"2MB", "0"}, {"1GB", "1073741824"}},
			container(abi.Resources + abi.Unified):        {{"memory.high", "1000000"}},
		},
	}
}

func (e *event) Hook() abi.Hook  { return e.hook }
func (e *event) Time() time.Time { return time.Unix(1, 0) }
func (e *event) About() observe.Object {
	return observe.Object{Namespace: "shop", Pod: "web-0", Container: "app"}
}

func (e *event) Int64(o abi.Object, f abi.Field) (int64, abi.Errno) {
	return get(e.numbers, o, f)
}

func (e *event) Text(o abi.Object, f abi.Field) (string, abi.Errno) {
	return get(e.texts, o, f)
}

func get[T any](m map[field]T, o abi.Object, f abi.Field) (T, abi.Errno) {
	v, ok := m[field{o, f}]
	if !ok {
		return v, abi.NotFound
	}
	return v, abi.OK
}

func (e *event) Entries(o abi.Object, f abi.Field) (iter.Seq2[string, string], abi.Errno) {
	all, errno := get(e.entries, o, f)
	return func(yield func(string, string) bool) {
		for _, kv := range all {
			if !yield(kv.key, kv.value) {
				return
			}
		}
	}, errno
}

func (e *event) Lookup(o abi.Object, f abi.Field, key string) (string, abi.Errno) {
	for _, kv := range slices.Backward(e.entries[field{o, f}]) {
		if kv.key == key {
			return kv.value, abi.OK
		}
	}
	return "", abi.NotFound
}

// Exempt implements plugin.Subject: policy holds.
func (e *event) Exempt() bool { return false }

// Apply implements plugin.Subject for the changes that tests of chains make.
func (e *event) Apply(changes []plugin.Owned) {
	for _, o := range changes {
		c := o.Change
		f := field{c.Object, c.Field}
		switch c.Op {
		case plugin.SetInt64:
			e.numbers[f] = c.Int
		case plugin.SetText:
			e.texts[f] = c.Text
		case plugin.SetEntry:
			e.entries[f] = append(e.entries[f], entry{c.Key, c.Text})
		}
	}
}
