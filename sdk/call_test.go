package sdk

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// create calls f as the handler of PreCreateContainer, on a node with cgroup v1,
// where any unified key is unsupported.
func create(t *testing.T, f func(*PreCreateContainer) error) (sdktest.Changes, error) {
	t.Helper()
	register(t, func() { Plugin("p", "1").Needs(all()...).OnPreCreateContainer(f) })
	return sdktest.Case{
		Hook: abi.PreCreateContainer, Cgroup: "v1", Grant: abi.AllCapabilities,
		Pod:       sdktest.Fields{"id": "pod1", "namespace": "prod", "name": "web", "uid": "u1"},
		Container: sdktest.Fields{"id": "c1"},
		Siblings:  []sdktest.Fields{{"id": "c2", "name": "log"}},
		Store: []sdktest.Pod{{
			Fields:     sdktest.Fields{"id": "pod2", "namespace": "prod", "name": "db", "uid": "u2"},
			Containers: []sdktest.Fields{{"id": "c3", "name": "postgres"}},
		}},
	}.Call(t, sdktest.Native(t, "", nil))
}

func TestIgnoredRefusalFailsTheHook(t *testing.T) {
	changes, err := create(t, func(c *PreCreateContainer) error {
		c.Resources().SetUnified("memory.high", "1")
		return c.SetAnnotation("example.com/tier", "gold")
	})
	if text(err) != "SetUnified memory.high: unsupported" || changes != nil {
		t.Errorf("got %v and error %v", changes, err)
	}
}

func TestHandledRefusal(t *testing.T) {
	for _, tc := range []struct {
		name string
		f    func(*PreCreateContainer) error
		want string // of the error
	}{
		{"the reason that came", func(c *PreCreateContainer) error {
			if !Handled(c.Resources().SetUnified("memory.high", "1"), ErrUnsupported) {
				return errors.New("not handled")
			}
			return nil
		}, ""},
		{"wrapped", func(c *PreCreateContainer) error {
			Handled(wrapped{c.Resources().SetUnified("memory.high", "1")}, ErrUnsupported)
			return nil
		}, ""},
		{"another reason", func(c *PreCreateContainer) error {
			if Handled(c.Resources().SetUnified("memory.high", "1"), ErrConflict) {
				return errors.New("handled")
			}
			return nil
		}, "SetUnified memory.high: unsupported"},
		{"one of two", func(c *PreCreateContainer) error {
			first := c.Resources().SetUnified("memory.high", "1")
			c.Resources().SetUnified("memory.low", "1")
			Handled(first, ErrUnsupported)
			return nil
		}, "SetUnified memory.low: unsupported"},
		{"the second of two", func(c *PreCreateContainer) error {
			c.Resources().SetUnified("memory.high", "1")
			Handled(c.Resources().SetUnified("memory.low", "1"), ErrUnsupported)
			return nil
		}, "SetUnified memory.high: unsupported"},
		{"no error, or a stranger", func(c *PreCreateContainer) error {
			if Handled(nil, ErrUnsupported) || Handled(errors.New("x"), ErrUnsupported) || Handled(ErrUnsupported, ErrUnsupported) {
				return errors.New("handled")
			}
			return nil
		}, ""},
		{"the plugin's own failure", func(c *PreCreateContainer) error {
			err := c.Resources().SetUnified("memory.high", "1")
			Handled(err, ErrUnsupported)
			return err
		}, "SetUnified memory.high: unsupported"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := create(t, tc.f)
			if got := text(err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A plugin without CapEnv may not read the environment.
func TestReadError(t *testing.T) {
	for _, tc := range []struct {
		name string
		f    func(*PreCreateContainer) error
		want string // of the error
	}{
		{"reads", func(c *PreCreateContainer) error {
			if ReadError() != nil {
				return errors.New("nothing was read")
			}
			c.Env("A")
			c.Envs()
			c.Container.Label("not there")
			if Handled(ReadError(), ErrUnsupported) || !Handled(ReadError(), ErrDenied) || ReadError() != nil {
				return errors.New("not handled")
			}
			return nil
		}, ""},
		{"a read and a setter", func(c *PreCreateContainer) error {
			c.SetArgs("b")
			c.Env("A")
			Handled(ReadError(), ErrDenied)
			return nil
		}, "SetArgs: denied"},
		{"a read after one that was handled", func(c *PreCreateContainer) error {
			c.Env("A")
			Handled(ReadError(), ErrDenied)
			c.Env("B")
			return nil
		}, "Env B: denied"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			register(t, func() { Plugin("p", "1").OnPreCreateContainer(tc.f) })
			event := sdktest.Case{
				Hook: abi.PreCreateContainer, Pod: sdktest.Fields{"id": "pod1", "namespace": "prod", "name": "web", "uid": "u1"},
				Container: sdktest.Fields{"name": "app"},
			}
			if _, err := event.Call(t, sdktest.Native(t, "", nil)); text(err) != tc.want {
				t.Errorf("got %q, want %q", text(err), tc.want)
			}
		})
	}
}

type wrapped struct{ error }

func (w wrapped) Unwrap() error { return w.error }

// text is what the plugin says, "" if it does not fail.
func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestErrorIsTheHostsReason(t *testing.T) {
	create(t, func(c *PreCreateContainer) error {
		err := c.SetAnnotation("io.kubernetes.pod.name", "x")
		var e *Error
		if !errors.Is(err, ErrDenied) || !errors.As(err, &e) || e.Op != "SetAnnotation" || e.Key != "io.kubernetes.pod.name" {
			t.Errorf("got %#v", err)
		}
		return nil
	})
}

// A refusal of one call must not fail the next.
func TestRefusalIsForgottenAfterTheCall(t *testing.T) {
	bad := true
	handler := func(c *PreCreateContainer) error {
		if bad {
			c.SetEnv("", "")
		}
		return nil
	}
	if _, err := create(t, handler); err == nil {
		t.Error("the first call did not fail")
	}
	bad = false
	if _, err := create(t, handler); err != nil {
		t.Errorf("the second call failed: %v", err)
	}
}

func TestReject(t *testing.T) {
	for name, f := range map[string]func(*PreCreateContainer) error{
		"returned": func(c *PreCreateContainer) error { return c.Reject(PermissionDenied, "not here") },
		"ignored":  func(c *PreCreateContainer) error { c.Reject(PermissionDenied, "not here"); return nil },
		"beside a failure": func(c *PreCreateContainer) error {
			c.Reject(PermissionDenied, "not here")
			return c.SetEnv("", "")
		},
	} {
		_, err := create(t, f)
		var r *sdktest.Rejection
		if !errors.As(err, &r) || *r != (sdktest.Rejection{Code: 7, Reason: "not here"}) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := create(t, func(c *PreCreateContainer) error { return c.Reject(4, "no such code") }); text(err) != "Reject: invalid" {
		t.Errorf("bad code: got %v", err)
	}
}

// A value larger than the shared buffer is read whole, and later small ones
// are not mixed up with it.
func TestLargeValues(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 1<<14)
	register(t, func() {
		Plugin("p", "1").OnPostStopContainer(func(c *PostStopContainer) error {
			if v, ok := c.Annotation("large"); !ok || v != large {
				t.Errorf("annotation of %d bytes, want %d", len(v), len(large))
			}
			seen := map[string]int{}
			for k, v := range c.Annotations() {
				if c.Name() != "web" {
					t.Error("a read within the loop failed")
				}
				seen[k] = len(v)
			}
			if len(seen) != 3 || seen["large"] != len(large) || seen["empty"] != 0 || seen["small"] != 1 {
				t.Errorf("ranged over %v", seen)
			}
			if v, ok := c.Annotation("empty"); v != "" || !ok {
				t.Errorf("empty annotation: %q, %v", v, ok)
			}
			if v, ok := c.Annotation("absent"); v != "" || ok {
				t.Errorf("absent annotation: %q, %v", v, ok)
			}
			return nil
		})
	})
	_, err := sdktest.Case{Hook: abi.PostStopContainer, Container: sdktest.Fields{
		"name": "web", "annotations": map[string]string{"large": large, "small": "1", "empty": ""},
	}}.Call(t, sdktest.Native(t, "", nil))
	if err != nil {
		t.Error(err)
	}
}

func TestFind(t *testing.T) {
	_, err := create(t, func(c *PreCreateContainer) error {
		for _, find := range []func() (FoundPod, bool){
			func() (FoundPod, bool) { return FindPod("prod", "db") },
			func() (FoundPod, bool) { return FindPodByID("pod2") },
			func() (FoundPod, bool) { return FindPodByUID("u2") },
			func() (FoundPod, bool) { c, ok := FindContainer("c3"); return c.Pod(), ok },
		} {
			p, ok := find()
			if !ok || p.Name() != "db" || len(p.Containers()) != 1 || p.Containers()[0].Name() != "postgres" {
				t.Errorf("found %q, %v", p.Name(), ok)
			}
		}
		if siblings := c.Pod().Containers(); len(siblings) != 2 || siblings[1].Name() != "log" || siblings[1].Pod().Name() != "web" {
			t.Errorf("siblings: %v", siblings)
		}
		p, ok := FindPod("prod", "nobody")
		if _, labelled := p.Label("x"); ok || labelled || p.Name() != "" || len(p.Containers()) != 0 {
			t.Error("found nobody")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A read that the host refuses must not look like an absent value.
func TestRefusedReadFailsTheHook(t *testing.T) {
	for want, read := range map[string]func(*PostStopContainer){
		"Name: unsupported":        func(c *PostStopContainer) { c.Name() },
		"CPUQuota: unsupported":    func(c *PostStopContainer) { c.Resources().CPUQuota() },
		"Label tier: unsupported":  func(c *PostStopContainer) { c.Label("tier") },
		"Labels: unsupported":      func(c *PostStopContainer) { c.Labels() },
		"Args: unsupported":        func(c *PostStopContainer) { c.Args() },
		"Env HOME: denied":         func(c *PostStopContainer) { c.Env("HOME") },
		"Request: denied":          func(*PostStopContainer) { Request() },
		"FindPod prod/web: denied": func(*PostStopContainer) { FindPod("prod", "web") },
		"Pods prod: denied":        func(*PostStopContainer) { Pods("prod") },
		"KVGet key: denied":        func(*PostStopContainer) { KVGet("key") },
	} {
		register(t, func() {
			Plugin("p", "1").OnPostStopContainer(func(c *PostStopContainer) error { read(c); return nil })
		})
		u := abi.Unsupported
		_, err := sdktest.Case{
			Hook: abi.PostStopContainer, Container: sdktest.Fields{"name": u, "resources.cpu_quota": u, "labels": u, "args": u},
		}.Call(t, sdktest.Native(t, "", nil))
		if text(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestConfigure(t *testing.T) {
	register(t, func() {
		Plugin("p", "1").OnPreExec(func(*PreExec) error { return nil }).OnConfigure(func(config string) error {
			if config != "on" && config != Config() {
				return errors.New("config differs")
			}
			if config == "off" {
				return errors.New("want on")
			}
			return nil
		})
	})
	if err := sdktest.Configure("on"); err != nil {
		t.Error(err)
	}
	if err := sdktest.Configure("off"); text(err) != "want on" {
		t.Errorf("got %v", err)
	}
}

func TestLog(t *testing.T) {
	var b strings.Builder
	register(t, func() {
		Plugin("p", "1").OnPostStopContainer(func(*PostStopContainer) error {
			Log(LevelWarn, "careful")
			return nil
		})
	})
	log := slog.New(slog.NewTextHandler(&b, nil))
	if _, err := (sdktest.Case{Hook: abi.PostStopContainer}).Call(t, sdktest.Native(t, "", log)); err != nil {
		t.Error(err)
	}
	if !strings.Contains(b.String(), "level=WARN msg=careful") {
		t.Errorf("logged %q", b.String())
	}
}

func TestSecondPluginAborts(t *testing.T) {
	register(t, func() {
		Plugin("p", "1").OnPostStopContainer(func(*PostStopContainer) error { Plugin("q", "1"); return nil })
	})
	defer func() {
		if r, _ := recover().(string); !strings.Contains(r, "called p and q") {
			t.Errorf("got %q", r)
		}
	}()
	sdktest.Case{Hook: abi.PostStopContainer}.Call(t, sdktest.Native(t, "", nil))
}

// A case in Go and one on paper give a plugin the same: what it declares of the default
// grant, and of what they grant besides.
func TestCasesHaveTheDefaultGrant(t *testing.T) {
	register(t, func() {
		Plugin("p", "1").Needs(CapAnnotations, CapEnv).OnPreCreateContainer(func(c *PreCreateContainer) error {
			if err := c.SetAnnotation("example.com/a", "b"); err != nil {
				return err
			}
			return c.SetEnv("A", "b")
		})
	})
	event := sdktest.Case{Hook: abi.PreCreateContainer, Container: sdktest.Fields{}}
	if changes, err := event.Call(t, sdktest.Native(t, "", nil)); err == nil || !strings.Contains(err.Error(), "denied") {
		t.Errorf("without a grant: %v, %v; want env to be denied", changes, err)
	}
	event.Grant = abi.CapabilitySetOf(abi.Env)
	if changes, err := event.Call(t, sdktest.Native(t, "", nil)); err != nil || len(changes) != 2 {
		t.Errorf("with env granted: %v, %v; want both changes", changes, err)
	}
	path := filepath.Join(t.TempDir(), "grant.json")
	if err := os.WriteFile(path, []byte(`[
		{"hook": "PreCreateContainer", "container": {}, "want": {"error": "denied"}},
		{"hook": "PreCreateContainer", "container": {}, "grant": ["env"], "want": {"changes": {"container.annotations[\"example.com/a\"]": "b", "container.env[\"A\"]": "b"}}}
	]`), 0o600); err != nil {
		t.Fatal(err)
	}
	sdktest.Run(t, path)
}
