package daemon_test

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// guarded makes the calls that exec-guard is for, and the one that starts a pod, and
// returns those that were refused since 10-guard is not loaded.
func (n *node) guarded(t *testing.T) string {
	t.Helper()
	ctx := t.Context()
	pod, err := n.runtime.RuntimeService.RunPodSandbox(ctx, podNamed("web"), "") // past the proxy
	n.must(err)
	container, err := n.runtime.RuntimeService.CreateContainer(ctx, pod, &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "web:1"},
	}, podNamed("web"))
	n.must(err)
	var refused []string
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"Exec", func() error {
			_, err := n.kubelet.Exec(ctx, &runtimeapi.ExecRequest{ContainerId: container, Cmd: []string{"sh"}, Stdout: true})
			return err
		}},
		{"Attach", func() error {
			_, err := n.kubelet.Attach(ctx, &runtimeapi.AttachRequest{ContainerId: container, Stdout: true})
			return err
		}},
		{"PortForward", func() error {
			_, err := n.kubelet.PortForward(ctx, &runtimeapi.PortForwardRequest{PodSandboxId: pod})
			return err
		}},
		{"RunPodSandbox", func() error {
			_, err := n.runPod(ctx, "next")
			return err
		}},
	} {
		err := call.do()
		switch {
		case err == nil:
		case status.Code(err) == codes.Unavailable && strings.Contains(err.Error(), "plugin 10-guard: Pre") && strings.Contains(err.Error(), "plugin is not loaded"):
			refused = append(refused, call.name)
		default:
			t.Errorf("%s: %v", call.name, err)
		}
	}
	return strings.Join(refused, " ")
}

// manifestFirst puts a manifest before everything else of a module.
func manifestFirst(module, manifest string) string {
	const magic = "\x00asm\x01\x00\x00\x00"
	name := "wp.manifest"
	section := string(binary.AppendUvarint(nil, uint64(len(name)))) + name + manifest
	return magic + "\x00" + string(binary.AppendUvarint(nil, uint64(len(section)))) + section + module[len(magic):]
}

// withoutManifest takes the manifest away that manifestFirst puts there.
func withoutManifest(module string) string {
	const header = 8
	length, n := binary.Uvarint([]byte(module[header+1:]))
	return module[:header] + module[header+1+n+int(length):]
}

// A plugin that must not be ignored and cannot be loaded refuses the hooks that are its
// own, and no other: exec-guard keeps people out, and pods start.
func TestPluginThatIsNotLoadedRefusesItsOwnHooks(t *testing.T) {
	guard, err := os.ReadFile("../../plugins-wasm/exec-guard/exec-guard.wasm")
	if err != nil {
		t.Fatal(err)
	}
	const own, making = "Exec Attach PortForward", "RunPodSandbox"
	cut, lost := string(guard[:len(guard)/2]), withoutManifest(string(guard))
	manifest := func(match string) string {
		return `{"name": "guard", "version": "1.0.0", "hooks": [{"hook": "PreExec"` + match + `}, "PostExec"]}`
	}
	for _, test := range []struct{ name, json, module, refused string }{
		{"a typo in its configuration", `{"failure-policy": "Fail", "config": {"lable": "tier=gold"}}`, string(guard), own},
		{"a typo in its file", `{"failure-policy": "Fail", "confg": {"label": "tier=gold"}}`, string(guard), own},
		{"a misspelt policy", `{"failure-policy": "fail"}`, string(guard), own},
		{"no JSON at all", `{"failure-policy": `, string(guard), own},
		{"another digest", `{"failure-policy": "Fail", "sha256": "` + strings.Repeat("0", 64) + `"}`, string(guard), own},
		{"cut short behind its manifest", `{"failure-policy": "Fail"}`, manifestFirst(cut, manifest("")), "Exec"},
		{"cut short", `{"failure-policy": "Fail"}`, cut, own},
		{"cut short, and its manifest is a function's", `{"failure-policy": "Fail"}`, lost[:len(lost)/2], making},
		{"a manifest that only a function tells, and a typo", `{"failure-policy": "Fail", "config": {"lable": ""}}`, lost, making + ", " + own},
		{"no module", `{"failure-policy": "Fail", "wasm-module": "none.wasm"}`, "", making},
		{"hooks in its file", `{"failure-policy": "Fail", "runtime-hooks": ["PreAttach"], "config": {"lable": ""}}`, string(guard), "Attach"},
		{"no hooks in its file", `{"failure-policy": "Fail", "runtime-hooks": [], "config": {"lable": ""}}`, string(guard), ""},
		{"a match in its file", `{"failure-policy": "Fail", "match": {"namespaces": ["prod"]}, "config": {"lable": ""}}`, string(guard), ""},
		{"a match in its manifest", `{"failure-policy": "Fail"}`, manifestFirst(cut, manifest(`, "match": {"namespaces": ["!test"]}`)), ""},
		{"a match in its manifest, and hooks in its file", `{"failure-policy": "Fail", "runtime-hooks": ["PreExec"]}`, manifestFirst(cut, manifest(`, "match": {"namespaces": ["!test"]}`)), ""},
		{"a match in its manifest that fits", `{"failure-policy": "Fail"}`, manifestFirst(cut, manifest(`, "match": {"namespaces": ["test"]}`)), "Exec"},
		{"under Ignore", `{"config": {"lable": "tier=gold"}}`, string(guard), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := caching(t)
			loads := n.hold("exec-guard")
			n.put("20-quota.wasm", "quota")
			if test.module != "" {
				n.putRaw("10-guard.wasm", test.module)
			}
			n.put("10-guard.json", test.json)
			n.start(daemon.Run)
			first, then, changes := strings.Cut(test.refused, ", ")
			if got := n.guarded(t); got != first {
				t.Errorf("before anything was loaded: refused %q, want %q", got, first)
			}
			loads()
			n.await("plugins active", "20-quota")
			if changes { // what the function tells is known once it has been called
				first = then
				n.await("plugin not loaded", "calls are refused in its hooks", "10-guard", "PreAttach")
				n.await("plugins active", "20-quota")
			}
			if got := n.guarded(t); got != first {
				t.Errorf("refused %q, want %q; log:\n%s", got, first, n.log)
			}
		})
	}
}

// What refuses its hooks does so until its file is mended, and as its file says by then.
func TestRefusalFollowsTheFile(t *testing.T) {
	guard, err := os.ReadFile("../../plugins-wasm/exec-guard/exec-guard.wasm")
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	n.put("20-quota.wasm", "quota")
	n.start(daemon.Run)
	n.awaitActive("20-quota")
	n.put("10-guard.json", `{"failure-policy": "Fail", "config": {"lable": "tier=gold"}}`)
	n.putRaw("10-guard.wasm", string(guard))
	n.await("plugin not loaded", "calls are refused in its hooks", "10-guard", "hooks=", "PreExec", "PreAttach", "lable")
	for _, step := range []struct{ json, refused string }{
		{`{"failure-policy": "Ignore", "config": {"lable": "tier=gold"}}`, ""},
		{`{"failure-policy": "Fail", "config": {"lable": "tier=gold"}, "runtime-hooks": ["PreExec"]}`, "Exec"},
	} {
		n.put("10-guard.json", step.json)
		n.await("plugins active", "plugins=[20-quota]")
		if got := n.guarded(t); got != step.refused {
			t.Errorf("with %s: refused %q", step.json, got)
		}
	}
	n.put("10-guard.json", `{"failure-policy": "Fail", "config": {"label": "tier=gold"}}`)
	n.awaitActive("10-guard", "20-quota")
	if got := n.guarded(t); got != "" {
		t.Errorf("once it is loaded: refused %q", got)
	}
	n.put("10-guard.json", `{"failure-policy": "Fail", "config": {"lable": "tier=gold"}}`)
	n.await("plugin not loaded", "the previous version stays active", "10-guard")
	if got := n.guarded(t); got != "" {
		t.Errorf("with the version before it: refused %q", got)
	}
}

// The hooks that only a function of the module tells, and that the load told before it
// failed, stay known while the file changes in other ways: nothing is loaded again for that.
func TestHooksThatALoadToldStayRefused(t *testing.T) {
	guard, err := os.ReadFile("../../plugins-wasm/exec-guard/exec-guard.wasm")
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t)
	n.put("20-quota.wasm", "quota")
	n.start(daemon.Run)
	n.awaitActive("20-quota")
	n.put("10-guard.json", `{"failure-policy": "Fail", "config": {"lable": "tier=gold"}}`)
	n.putRaw("10-guard.wasm", withoutManifest(string(guard)))
	n.await("plugin not loaded", "calls are refused in its hooks", "10-guard", "PreAttach")
	for _, match := range []string{`{"namespaces": ["test"]}`, `{"namespaces": ["test", "prod"]}`} {
		n.put("10-guard.json", `{"failure-policy": "Fail", "config": {"lable": "tier=gold"}, "match": `+match+`}`)
		n.await("plugins active", "plugins=[20-quota]")
		if got := n.guarded(t); got != "Exec Attach PortForward" {
			t.Errorf("with match %s: refused %q", match, got)
		}
	}
}
