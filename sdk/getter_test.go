package sdk

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// unread are fields that have no getter of their own.
var unread = map[string]string{
	"event.hook":               "the type of the event says it",
	"event.method":             "the type of the event says it",
	"container.pod_sandbox_id": "Container.Pod has it",
}

// TestGettersAreTheTable sets one field at a time and demands that exactly one
// getter shows it, or for a map the getter of an entry and that of all.
func TestGettersAreTheTable(t *testing.T) {
	for _, info := range abi.Fields {
		name := info.Object.String() + "." + info.Name
		if reason, ok := unread[name]; ok {
			t.Logf("%s has no getter: %s", name, reason)
			continue
		}
		t.Run(name, func(t *testing.T) {
			want := 1
			if info.Type == abi.Map {
				want = 2
			}
			if got := shown(t, having(info)); len(got) != want {
				t.Errorf("shown by %q, want %d getters", got, want)
			}
		})
	}
}

// having is a case in which one field has the value 42, or 1 where it is a truth.
func having(info abi.FieldInfo) sdktest.Case {
	c := sdktest.Case{Grant: abi.AllCapabilities, Event: sdktest.Fields{}, Pod: sdktest.Fields{}, Container: sdktest.Fields{}, Node: sdktest.Fields{}}
	var value any
	switch info.Type {
	case abi.Int64:
		value = 42
	case abi.String:
		value = "42"
	case abi.Map:
		value = map[string]string{"key": "42"}
	default:
		value = []string{"42"}
		for _, r := range abi.Records {
			if r.Object == info.Object && r.Field == info.Field {
				value = []map[string]string{{r.Key: "42"}}
			}
		}
	}
	switch info.Object {
	case abi.Event:
		c.Event[info.Name] = value
		if info.Field == abi.EventTime {
			c.Time = 42
			delete(c.Event, info.Name)
		}
	case abi.Pod:
		c.Pod[info.Name] = value
	case abi.Container:
		c.Container[info.Name] = value
	case abi.Node:
		c.Node[info.Name] = value
	}
	return c
}

// events are such that every getter is a method of one of them.
var events = []any{
	&PreExec{}, &PostExecSync{}, &PreStopContainer{}, &PrePortForward{}, &PreCheckpointPod{}, &PostPullImage{}, &PreRunPodSandbox{},
}

// shown calls all getters and returns the names of those that show the value.
func shown(t *testing.T, c sdktest.Case) []string {
	t.Helper()
	var names []string
	c.Hook = abi.PostStopContainer
	register(t, func() {
		Plugin("p", "1").Needs(CapEnv, CapStoreRead).OnPostStopContainer(func(*PostStopContainer) error {
			if shows(Now()) {
				names = append(names, "Now")
			}
			names = append(names, callGetters(reflect.ValueOf(Node))...)
			for _, event := range events {
				names = append(names, callGetters(reflect.ValueOf(event))...)
			}
			return nil
		})
	})
	if _, err := c.Call(t, sdktest.Native(t, "", nil)); err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// callGetters calls the getters of an event, and of the pod, the container and the
// resources in it. Getters go by the type that has them.
func callGetters(v reflect.Value) []string {
	var names []string
	for m, method := range v.Methods() {
		changes := func(prefix string) bool {
			return strings.HasPrefix(m.Name, prefix) && !strings.HasSuffix(m.Name, "Capabilities")
		}
		if slices.ContainsFunc([]string{"Set", "Add", "Delete", "Withdraw"}, changes) || slices.Contains([]string{"Reject", "ReadCgroup", "ReadQoSCgroup", "Reported"}, m.Name) {
			continue
		}
		result := method.Call(arguments(m.Name, method.Type()))[0]
		switch got := result.Interface().(type) {
		case Resources:
			for _, n := range callGetters(reflect.ValueOf(got)) {
				names = append(names, m.Name+"."+n)
			}
		default:
			if shows(got) {
				names = append(names, owner(v.Type(), m.Name)+m.Name)
			}
		}
	}
	return names
}

// owner tells getters of pods from those of containers.
func owner(t reflect.Type, method string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for _, part := range []reflect.Type{reflect.TypeFor[Container](), reflect.TypeFor[Pod]()} {
		if field, ok := t.FieldByName(part.Name()); ok && field.Type == part {
			if _, ok := part.MethodByName(method); ok {
				return part.Name() + "."
			}
		}
	}
	return ""
}

func shows(v any) bool {
	switch v := v.(type) {
	case Entries:
		for k, text := range v {
			if k == "key" && text == "42" {
				return true
			}
		}
		return false
	case bool:
		return v
	case string, int64, int, []string, []Mount, []Device:
		return strings.Contains(" "+strings.Trim(fmt.Sprint(v), "[{}]")+" ", " 42 ")
	}
	return false
}
