package sdktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/internal/native"
)

// Case is one call of one hook: what the plugin is told. As in a fixture, and as on a
// node, the plugin has what it declares of abi.DefaultGrant and of Grant, which is
// abi.AllCapabilities to give it everything. Pods and containers with an id are in the
// store, the event's own too.
type Case struct {
	Name      string            `json:"name"`
	Hook      abi.Hook          `json:"-"`
	Time      int64             `json:"time"`  // nanoseconds since the Unix epoch
	Event     Fields            `json:"event"` // beside hook and time
	Pod       Fields            `json:"pod"`
	Container Fields            `json:"container"`
	Node      Fields            `json:"node"`
	Siblings  []Fields          `json:"siblings"` // the pod's other containers
	Store     []Pod             `json:"store"`    // other pods
	Cgroup    string            `json:"cgroup"`   // "v1" or "v2": which cgroup files can be written; "" for none
	Request   []byte            `json:"request"`
	Grant     abi.CapabilitySet `json:"-"`
	KV        map[string]string `json:"kv"`
	Earlier   Changes           `json:"earlier"` // what an earlier plugin has asked for; not on handles
	Want      *Want             `json:"want"`    // for [Run]; nil if the call only must not fail

	// CgroupFiles can be read, by object ("pod", "container") or id, and name.
	CgroupFiles map[string]map[string]string `json:"cgroup_files"`
}

// Fields are the values of an object, by their names in the ABI's table of
// fields: an int or int64 for abi.Int64, a string for abi.String, a
// map[string]string for abi.Map, a []string for abi.List and abi.Set, or a
// []map[string]string for a set of records. What is not there is 0 or empty. The value of
// a field that the proxy cannot tell is abi.Unsupported.
type Fields map[string]any

// Pod is a pod of the proxy's store.
type Pod struct {
	Fields     Fields   `json:"pod"`
	Containers []Fields `json:"containers"`
}

// Rejection is the error of [Case.Call] if the plugin refuses the call.
type Rejection = native.Rejection

// Call calls the plugin and returns what it asks for, nothing if it fails or refuses the
// call. A refusal is a *[Rejection]. A field that the ABI does not know, or of another
// type, fails the test.
func (c Case) Call(t testing.TB, p *Plugin) (Changes, error) {
	t.Helper()
	call, err := p.call(c)
	if err != nil {
		t.Fatalf("sdktest: %v", err)
	}
	return p.run(call, func() int32 { return native.Guest.Hook(c.Hook) })
}

// objects returns the case's objects. Those with an id also have a handle.
func (c Case) objects() (objects, error) {
	all := objects{}
	own := Pod{c.Pod, c.Siblings}
	if c.Container != nil {
		own.Containers = append([]Fields{c.Container}, c.Siblings...)
	}
	for i, p := range append([]Pod{own}, c.Store...) {
		pod, containers, err := all.add(p)
		if err != nil {
			return nil, err
		}
		if i == 0 && c.Pod != nil {
			all[abi.Pod], pod.Own = pod, true
		}
		if i == 0 && c.Container != nil {
			all[abi.Container], containers[0].Own = containers[0], true
		}
	}
	for kind, fields := range map[abi.Object]Fields{abi.Event: c.Event, abi.Node: c.Node} {
		o, err := newObject(kind, fields)
		if err != nil {
			return nil, err
		}
		all[kind] = o
	}
	all[abi.Event].Fields[abi.EventHook], all[abi.Event].Fields[abi.EventTime] = int64(c.Hook), c.Time
	return all, nil
}

type objects map[abi.Object]*native.Object

// add adds a pod and its containers.
func (all objects) add(p Pod) (pod *native.Object, containers []*native.Object, err error) {
	if pod, err = newObject(abi.Pod, p.Fields); err != nil {
		return nil, nil, err
	}
	all.handle(pod)
	for _, fields := range p.Containers {
		o, err := newObject(abi.Container, fields)
		if err != nil {
			return nil, nil, err
		}
		if o.Text(abi.ContainerPodID) == "" {
			o.Fields[abi.ContainerPodID] = pod.Text(abi.PodID)
		}
		if handle := all.handle(o); handle != 0 {
			pod.Containers = append(pod.Containers, handle)
		}
		containers = append(containers, o)
	}
	slices.SortFunc(pod.Containers, func(a, b abi.Object) int {
		return strings.Compare(all[a].Text(abi.ContainerID), all[b].Text(abi.ContainerID))
	})
	return pod, containers, nil
}

// handle gives an object a handle, 0 if it has no id.
func (all objects) handle(o *native.Object) abi.Object {
	if o.Text(abi.PodID) == "" { // or ContainerID, which is the same number
		return 0
	}
	handle := abi.FirstHandle + abi.Object(len(all))
	all[handle] = o
	return handle
}

// newObject reads the fields of an object. One that is left out is 0 or empty, as CRI has it,
// but for those of the event, and for the user and group that a container runs as.
func newObject(kind abi.Object, fields Fields) (*native.Object, error) {
	o := &native.Object{Kind: kind, Fields: map[abi.Field]any{}}
	for _, info := range abi.Fields {
		optional := kind == abi.Container && (info.Field == abi.ContainerRunAsUser || info.Field == abi.ContainerRunAsGroup)
		if info.Object == kind && kind != abi.Event && !optional {
			o.Fields[info.Field], _ = value(info, nil)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		info, ok := abi.FieldByName(kind, name)
		if !ok {
			return nil, fmt.Errorf("%v has no field %q", kind, name)
		}
		v, err := value(info, fields[name])
		if err != nil {
			return nil, fmt.Errorf("%v.%s: %w", kind, name, err)
		}
		o.Fields[info.Field] = v
	}
	return o, nil
}

// value brings a value into the form that its type has in an object, by way of JSON.
func value(info abi.FieldInfo, v any) (any, error) {
	if errno, ok := v.(abi.Errno); ok {
		return errno, nil
	}
	switch info.Type {
	case abi.Int64:
		return convert[int64](v)
	case abi.String:
		return convert[string](v)
	case abi.Map:
		return convert[map[string]string](v)
	}
	if keys := info.RecordKeys(); keys != nil {
		return records(v, keys)
	}
	return convert[[]string](v)
}

func convert[T any](v any) (to T, err error) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &to)
	}
	return to, err
}

// records encodes the elements of a set of records.
func records(v any, keys []string) ([]string, error) {
	records, err := convert[[]map[string]string](v)
	list := make([]string, len(records))
	for i, record := range records {
		for key := range record {
			if !slices.Contains(keys, key) {
				return nil, fmt.Errorf("an element has no key %q", key)
			}
		}
		list[i] = string(abi.AppendRecord(nil, keys, func(key string) string { return record[key] }))
	}
	return list, err
}
