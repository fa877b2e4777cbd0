package sdk

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup"
	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// onHook registers f for a hook by the name of its method, so that a hook
// without a method, or with a wrong one, is found.
func onHook(t *testing.T, r *Registration, hook abi.Hook, f func(event reflect.Value) error) {
	t.Helper()
	on := reflect.ValueOf(r).MethodByName("On" + hook.String())
	if !on.IsValid() {
		t.Fatalf("Registration has no method On%v", hook)
	}
	handler := on.Type().In(0)
	if name := handler.In(0).Elem().Name(); name != hook.String() {
		t.Errorf("On%v takes a handler of %s", hook, name)
	}
	on.Call([]reflect.Value{reflect.MakeFunc(handler, func(args []reflect.Value) []reflect.Value {
		result := reflect.New(handler.Out(0)).Elem()
		if err := f(args[0]); err != nil {
			result.Set(reflect.ValueOf(err))
		}
		return []reflect.Value{result}
	})})
}

// everything is a case in which nothing is missing that a hook may need.
func everything(t *testing.T, hook abi.Hook) sdktest.Case {
	t.Helper()
	fs, err := cgroup.Open(t.TempDir(), "v2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fs.Close() })
	c := sdktest.Case{Hook: hook, Files: fs, Pod: sdktest.Fields{"id": "pod1"}, Node: sdktest.Fields{"cgroup_version": 2}}
	if hook.Info().Object == abi.Container {
		c.Container = sdktest.Fields{"id": "container1"}
	}
	return c
}

// samples are valid arguments of the setters that do not take just any.
var samples = map[string][]string{
	"SetCpusetCPUs": {"0-3"}, "SetCpusetMems": {"0"}, "SetCgroupParent": {"/kubepods/pod1"},
	"SetHugepageLimit": {"2MB", "4096"}, "DeleteHugepageLimit": {"1GB"},
	"SetUnified": {"memory.high", "4096"}, "DeleteUnified": {"memory.low"}, "SetCgroup": {"cpu.idle", "1"},
}

// TestSettersAreTheTable calls every setter of every event and demands that
// together they reach exactly what the table says is writable in that hook.
func TestSettersAreTheTable(t *testing.T) {
	for _, info := range abi.Hooks {
		t.Run(info.Name, func(t *testing.T) {
			register(t, func() {
				onHook(t, Plugin("p", "1"), info.Hook, func(event reflect.Value) error { return callSetters(t, event) })
			})
			changes, err := everything(t, info.Hook).Call(t, sdktest.Native(t, "", nil))
			if err != nil {
				t.Fatal(err)
			}
			got, want := reached(changes), writable(info.Hook)
			if !slices.Equal(got, want) {
				t.Errorf("setters reach %q\nthe table has %q", got, want)
			}
		})
	}
}

func reached(changes sdktest.Changes) []string {
	var targets []string
	for target, value := range changes {
		if value == sdktest.Deleted {
			target += "=" + value
		}
		targets = append(targets, target)
	}
	slices.Sort(targets)
	return targets
}

// callSetters calls each setter with a key of its own, so that no change hides another.
func callSetters(t *testing.T, v reflect.Value) error {
	for name, method := range v.Methods() {
		switch {
		case strings.HasPrefix(name.Name, "Set"), strings.HasPrefix(name.Name, "Delete"):
			args := arguments(name.Name, method.Type())
			if err, _ := method.Call(args)[0].Interface().(error); err != nil {
				return fmt.Errorf("%s: %w", name.Name, err)
			}
		case name.Name == "Resources":
			if err := callSetters(t, method.Call(nil)[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

func arguments(name string, method reflect.Type) []reflect.Value {
	var args []reflect.Value
	for i := range method.NumIn() {
		switch {
		case method.In(i).Kind() == reflect.Int64:
			args = append(args, reflect.ValueOf(int64(1000)))
		case i < len(samples[name]):
			args = append(args, reflect.ValueOf(samples[name][i]))
		case strings.HasPrefix(name, "Delete"):
			args = append(args, reflect.ValueOf("gone"))
		default:
			args = append(args, reflect.ValueOf("key"))
		}
	}
	return args
}

// writable lists what the tables let a plugin change in a hook, as sdktest
// names it when callSetters did it.
func writable(hook abi.Hook) []string {
	keys := map[string][2]string{"hugepage_limits": {"2MB", "1GB"}, "unified": {"memory.high", "memory.low"}}
	var targets []string
	for _, info := range abi.Fields {
		target := info.Object.String() + "." + info.Name
		switch {
		case !info.Writable.Has(hook):
		case info.Type == abi.Map:
			key := cmp.Or(keys[info.Name[strings.LastIndexByte(info.Name, '.')+1:]], [2]string{"key", "gone"})
			targets = append(targets, fmt.Sprintf("%s[%q]", target, key[0]), fmt.Sprintf("%s[%q]=%s", target, key[1], sdktest.Deleted))
		default:
			targets = append(targets, target)
		}
	}
	for _, o := range []abi.Object{abi.Pod, abi.Container} {
		if abi.CgroupWritable(o).Has(hook) {
			targets = append(targets, o.String()+" cgroup file cpu.idle")
		}
	}
	slices.Sort(targets)
	return targets
}

// TestRefusalIsForPreHooks holds the method Reject to the table.
func TestRefusalIsForPreHooks(t *testing.T) {
	for _, info := range abi.Hooks {
		register(t, func() {
			onHook(t, Plugin("p", "1"), info.Hook, func(event reflect.Value) error {
				if event.MethodByName("Reject").IsValid() != info.Pre {
					return errors.New("has Reject where it must not, or lacks it where it must")
				}
				return nil
			})
		})
		if _, err := everything(t, info.Hook).Call(t, sdktest.Native(t, "", nil)); err != nil {
			t.Errorf("%v: %v", info.Hook, err)
		}
	}
}

// unread are fields that have no getter of their own.
var unread = map[string]string{
	"event.hook":               "the type of the event says it",
	"container.pod_sandbox_id": "Container.Pod has it",
}

// TestGettersAreTheTable sets one field at a time and demands that exactly one
// getter shows it, or for a map the getter of an entry and that of all.
func TestGettersAreTheTable(t *testing.T) {
	for _, info := range abi.Fields {
		name := info.Object.String() + "." + info.Name
		t.Run(name, func(t *testing.T) {
			if reason, ok := unread[name]; ok {
				t.Log("no getter: " + reason)
				return
			}
			c := sdktest.Case{Hook: abi.PostStopContainer, Pod: sdktest.Fields{}, Container: sdktest.Fields{}, Node: sdktest.Fields{}}
			want := 1
			var value any = map[abi.Type]any{abi.Int64: 42, abi.String: "42", abi.Map: map[string]string{"key": "42"}}[info.Type]
			if info.Type == abi.Map {
				want = 2
			}
			switch info.Object {
			case abi.Event:
				c.At = c.At.AddDate(1969, 0, 0).Add(42) // 42 ns after the epoch
			case abi.Pod:
				c.Pod[info.Name] = value
			case abi.Container:
				c.Container[info.Name] = value
			case abi.Node:
				c.Node[info.Name] = value
			}
			if got := shown(t, c); len(got) != want {
				t.Errorf("shown by %q, want %d getters", got, want)
			}
		})
	}
}

// shown calls all getters and returns the names of those that return 42.
func shown(t *testing.T, c sdktest.Case) []string {
	t.Helper()
	var names []string
	register(t, func() {
		Plugin("p", "1").OnPostStopContainer(func(e *PostStopContainer) error {
			for name, v := range map[string]any{
				"Now": Now(), "CgroupVersion": CgroupVersion(), "RuntimeName": RuntimeName(), "RuntimeVersion": RuntimeVersion(),
			} {
				if fmt.Sprint(v) == "42" {
					names = append(names, name)
				}
			}
			names = append(names, callGetters(reflect.ValueOf(e.Container))...)
			names = append(names, callGetters(reflect.ValueOf(e.Pod()))...)
			return nil
		})
	})
	if _, err := c.Call(t, sdktest.Native(t, "", nil)); err != nil {
		t.Fatal(err)
	}
	return names
}

func callGetters(v reflect.Value) []string {
	var names []string
	for m, method := range v.Methods() {
		name := v.Type().Name() + "." + m.Name
		args := arguments(m.Name, method.Type())
		switch got := method.Call(args)[0].Interface().(type) {
		case Resources:
			for _, n := range callGetters(reflect.ValueOf(got)) {
				names = append(names, name+"."+n)
			}
		case Entries:
			for k, v := range got {
				if k == "key" && v == "42" {
					names = append(names, name)
				}
			}
		case string, int64:
			if fmt.Sprint(got) == "42" {
				names = append(names, name)
			}
		}
	}
	return names
}
