package sdktest

import (
	"runtime"
	"testing"
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
			tc.Call(r, &Plugin{})
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
