package sdktest

import (
	"runtime"
	"slices"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// recorder is a testing.TB that notes a failure instead of ending the test.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(string, ...any) {
	r.failed = true
	runtime.Goexit()
}

// A field that is misspelt in a test must not look absent to the plugin.
func TestWrongFieldsFailTheTest(t *testing.T) {
	for _, tc := range []Case{
		{Pod: Fields{"nmae": "web"}},
		{Container: Fields{"name": 7}},
		{Node: Fields{"cgroup_version": "2"}},
		{Container: Fields{"mounts": []string{"/data"}}},
		{Container: Fields{"mounts": []map[string]string{{"path": "/data"}}}},
		{Pod: Fields{"labels": "x"}},
		{Store: []Pod{{Fields: Fields{"name": "db"}, Containers: []Fields{{"hostname": "x"}}}}},
	} {
		r := &recorder{TB: t}
		done := make(chan struct{})
		go func() {
			defer close(done)
			tc.NewEvent(r)
		}()
		<-done
		if !r.failed {
			t.Errorf("%+v was taken", tc)
		}
	}
}

func TestNativeWithoutAPlugin(t *testing.T) {
	if err := Configure(""); err == nil {
		t.Error("a plugin was found where no package imports sdk")
	}
}

// A case answers as a node does: by the table of fields, and NOT_FOUND for all else.
func TestEventAnswersByTheTable(t *testing.T) {
	e := Case{
		Hook: abi.PreCreateContainer,
		Pod:  Fields{"id": "p", "labels": map[string]string{"b": "2", "a": "1"}}, Container: Fields{"id": "c"},
	}.NewEvent(t)
	if v, errno := e.Text(abi.Pod, abi.PodID); v != "p" || errno != abi.OK {
		t.Errorf("id: %q, %v", v, errno)
	}
	for name, errno := range map[string]abi.Errno{
		"absent":         second(e.Int64(abi.Container, abi.ContainerRunAsUser)),
		"no event field": second(e.Text(abi.Event, abi.EventImage)),
		"of no object":   second(e.Text(abi.Object(5), abi.PodName)),
		"of no field":    second(e.Text(abi.Pod, 99)),
		"of other type":  second(e.Int64(abi.Pod, abi.PodID)),
		"no map":         second(e.Lookup(abi.Pod, abi.PodID, "a")),
		"no key":         second(e.Lookup(abi.Pod, abi.PodLabels, "c")),
		"no container":   second(e.Find(abi.ByContainerID, "p")),
		"no pod":         second(e.Containers(abi.Container)),
	} {
		if errno != abi.NotFound {
			t.Errorf("%s: %v", name, errno)
		}
	}
	if v, errno := e.Text(abi.Pod, abi.PodName); v != "" || errno != abi.OK {
		t.Errorf("left out: %q, %v", v, errno)
	}
	entries, _ := e.Entries(abi.Pod, abi.PodLabels)
	if keys := keysOf(entries); !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("labels in the order %q", keys)
	}
	pod, _ := e.Find(abi.ByPodID, "p")
	list, _ := e.Containers(pod)
	if len(list) != 1 {
		t.Fatalf("containers: %v", list)
	}
	if id, _ := e.Text(list[0], abi.ContainerPodID); id != "p" {
		t.Errorf("the container is in pod %q", id)
	}
}

func second[T any](_ T, errno abi.Errno) abi.Errno { return errno }

func keysOf(entries func(func(string, string) bool)) []string {
	var keys []string
	entries(func(k, _ string) bool {
		keys = append(keys, k)
		return true
	})
	return keys
}
