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
	args := []reflect.Value{reflect.MakeFunc(handler, func(args []reflect.Value) []reflect.Value {
		result := reflect.New(handler.Out(0)).Elem()
		if err := f(args[0]); err != nil {
			result.Set(reflect.ValueOf(err))
		}
		return []reflect.Value{result}
	})}
	if hook == abi.Tick {
		args = append(args, reflect.ValueOf(int64(abi.MinTickMS)))
	}
	on.Call(args)
}

// everything is a case in which nothing is missing that a hook may need.
func everything(hook abi.Hook) sdktest.Case {
	c := sdktest.Case{Hook: hook, Grant: abi.AllCapabilities, Cgroup: "v2", Node: sdktest.Fields{"cgroup_version": 2}}
	if object := hook.Info().Object; object != abi.Event {
		c.Pod = sdktest.Fields{"id": "pod1", "cgroup_parent": "/kubepods"}
		if object == abi.Container {
			c.Container = sdktest.Fields{"id": "container1"}
		}
	}
	return c
}

// all are the names of all capabilities.
func all() []Capability {
	var list []Capability
	for _, info := range abi.Capabilities {
		list = append(list, Capability(info.Name))
	}
	return list
}

// samples are valid arguments of the setters that do not take just any.
var samples = map[string][]any{
	"SetCpusetCPUs": {"0-3"}, "SetCpusetMems": {"0"}, "SetCgroupParent": {"/kubepods/pod1"},
	"SetHugepageLimit": {"2MB", "4096"}, "DeleteHugepageLimit": {"1GB"},
	"SetUnified": {"memory.high", "4096"}, "DeleteUnified": {"memory.low"}, "SetCgroup": {"cpu.idle", "1"},
	"AddMount": {Mount{ContainerPath: "/key", HostPath: "/host"}}, "DeleteMount": {"/gone"},
	"AddDevice": {Device{ContainerPath: "/key", HostPath: "/dev/null", Permissions: "rw"}}, "DeleteDevice": {"/gone"},
	"AddCDIDevice": {"example.com/class=key"}, "DeleteCDIDevice": {"example.com/class=gone"},
	"AddSupplementalGroup": {int64(1)}, "DeleteSupplementalGroup": {int64(2)}, "SetWorkingDir": {"/key"},
	"SetCommand": {"sh", "-c"}, "SetArgs": {"sleep"},
}

// TestSettersAreTheTable calls every setter of every event and demands that
// together they reach exactly what the table says is writable in that hook.
func TestSettersAreTheTable(t *testing.T) {
	for _, info := range abi.Hooks {
		t.Run(info.Name, func(t *testing.T) {
			register(t, func() {
				onHook(t, Plugin("p", "1").Needs(all()...), info.Hook, func(event reflect.Value) error { return callSetters(t, event) })
			})
			changes, err := everything(info.Hook).Call(t, sdktest.Native(t, "", nil))
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

// TestWithdrawReachesTheTable calls every setter of every event, and withdraws what the table says is writable in that hook.
func TestWithdrawReachesTheTable(t *testing.T) {
	for _, info := range abi.Hooks {
		t.Run(info.Name, func(t *testing.T) {
			register(t, func() {
				onHook(t, Plugin("p", "1").Needs(all()...), info.Hook, func(event reflect.Value) error {
					return errors.Join(callSetters(t, event), withdrawAll(info.Hook, event))
				})
			})
			changes, err := everything(info.Hook).Call(t, sdktest.Native(t, "", nil))
			if err != nil || len(changes) > 0 {
				t.Errorf("error %v, and not withdrawn are %v", err, changes)
			}
		})
	}
}

func withdrawAll(hook abi.Hook, event reflect.Value) (err error) {
	for _, info := range abi.Fields {
		if !info.Writable.Has(hook) {
			continue
		}
		keys := []string{""}
		if info.Type == abi.Map || info.Type == abi.Set {
			keys = keys[:0]
			for _, target := range targets(info) {
				keys = append(keys, strings.Split(target, `"`)[1])
			}
		}
		for _, key := range keys {
			switch of := event.Interface().(type) {
			case *PrePullImage:
				err = errors.Join(err, of.WithdrawImage())
			case interface{ Pod() Pod }:
				if info.Object == abi.Pod {
					err = errors.Join(err, of.Pod().Withdraw(info.Field, key))
				} else {
					err = errors.Join(err, event.Interface().(withdrawer).Withdraw(info.Field, key))
				}
			default:
				err = errors.Join(err, event.Interface().(withdrawer).Withdraw(info.Field, key))
			}
		}
	}
	if abi.CgroupWritable(hook.Info().Object).Has(hook) {
		err = errors.Join(err, event.Interface().(withdrawer).WithdrawCgroup("cpu.idle"))
	}
	return err
}

type withdrawer interface {
	Withdraw(field abi.Field, key string) error
	WithdrawCgroup(file string) error
}

// TestFoundSettersAreTheTable does the same for what was looked up.
func TestFoundSettersAreTheTable(t *testing.T) {
	register(t, func() {
		Plugin("p", "1").Needs(all()...).OnTick(func(*Tick) error {
			for _, pod := range Pods("") {
				if err := callSetters(t, reflect.ValueOf(pod)); err != nil {
					return err
				}
				for _, c := range pod.Containers() {
					if err := callSetters(t, reflect.ValueOf(c)); err != nil {
						return err
					}
				}
			}
			return nil
		}, abi.MinTickMS)
	})
	c := everything(abi.Tick)
	c.Store = []sdktest.Pod{{Fields: sdktest.Fields{"id": "p"}, Containers: []sdktest.Fields{{"id": "c"}}}}
	changes, err := c.Call(t, sdktest.Native(t, "", nil))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"pod(p) cgroup file cpu.idle", "container(c) cgroup file cpu.idle"}
	for _, info := range abi.Fields {
		if abi.HandleWritable(info) {
			for _, target := range targets(info) {
				if !strings.HasSuffix(target, sdktest.Deleted) {
					want = append(want, strings.Replace(target, "container.", "container(c).", 1))
				}
			}
		}
	}
	slices.Sort(want)
	if got := reached(changes); !slices.Equal(got, want) {
		t.Errorf("setters reach %q\nthe table has %q", got, want)
	}
}

func reached(changes sdktest.Changes) []string {
	var list []string
	for target, value := range changes {
		if value == sdktest.Deleted {
			target += "=" + value
		}
		list = append(list, target)
	}
	slices.Sort(list)
	return list
}

// callSetters calls each setter with a key of its own, so that no change hides another.
func callSetters(t *testing.T, v reflect.Value) error {
	for name, method := range v.Methods() {
		switch {
		case strings.HasPrefix(name.Name, "Set"), strings.HasPrefix(name.Name, "Delete"), strings.HasPrefix(name.Name, "Add") && method.Type().NumIn() > 0:
			args := arguments(name.Name, method.Type())
			err, _ := method.Call(args)[0].Interface().(error)
			if err != nil && !Handled(err, ErrUnsupported) { // nothing is taken away from a handle
				return fmt.Errorf("%s: %w", name.Name, err)
			}
		case name.Name == "Resources", name.Name == "Overhead":
			if err := callSetters(t, method.Call(nil)[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

func arguments(name string, method reflect.Type) []reflect.Value {
	var args []reflect.Value
	if given := samples[name]; given != nil {
		for _, arg := range given {
			args = append(args, reflect.ValueOf(arg))
		}
		return args
	}
	for i := range method.NumIn() {
		switch {
		case method.In(i).Kind() == reflect.Int64:
			args = append(args, reflect.ValueOf(int64(1000)))
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
	var list []string
	for _, info := range abi.Fields {
		if info.Writable.Has(hook) {
			list = append(list, targets(info)...)
		}
	}
	for _, o := range []abi.Object{abi.Pod, abi.Container} {
		if abi.CgroupWritable(o).Has(hook) {
			list = append(list, o.String()+" cgroup file cpu.idle")
		}
	}
	slices.Sort(list)
	return list
}

// targets are those of a field: of one with keys one that is set, and one that is deleted.
func targets(info abi.FieldInfo) []string {
	keys := map[string][2]string{
		"hugepage_limits": {"2MB", "1GB"}, "unified": {"memory.high", "memory.low"}, "mounts": {"/key", "/gone"}, "devices": {"/key", "/gone"},
		"cdi_devices": {"example.com/class=key", "example.com/class=gone"}, "supplemental_groups": {"1", "2"},
	}
	target := info.Object.String() + "." + info.Name
	if info.Type != abi.Map && info.Type != abi.Set {
		return []string{target}
	}
	key := cmp.Or(keys[info.Name[strings.LastIndexByte(info.Name, '.')+1:]], [2]string{"key", "gone"})
	return []string{fmt.Sprintf("%s[%q]", target, key[0]), fmt.Sprintf("%s[%q]=%s", target, key[1], sdktest.Deleted)}
}

// TestRefusalIsForPreHooks holds the method Reject to the table.
func TestRefusalIsForPreHooks(t *testing.T) {
	for _, info := range abi.Hooks {
		register(t, func() {
			onHook(t, Plugin("p", "1"), info.Hook, func(event reflect.Value) error {
				if event.MethodByName("Reject").IsValid() != (info.Phase == abi.Before) {
					return errors.New("has Reject where it must not, or lacks it where it must")
				}
				return nil
			})
		})
		if _, err := everything(info.Hook).Call(t, sdktest.Native(t, "", nil)); err != nil {
			t.Errorf("%v: %v", info.Hook, err)
		}
	}
}
