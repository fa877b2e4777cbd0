package daemon_test

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
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

// A plugin that must not be ignored refuses its own hooks, and no other, while it is loaded for the first time:
// exec-guard keeps people out, and pods start.
func TestPluginThatIsBeingLoadedRefusesItsOwnHooks(t *testing.T) {
	guard, err := os.ReadFile("../../plugins-wasm/exec-guard/exec-guard.wasm")
	if err != nil {
		t.Fatal(err)
	}
	const own, making = "Exec Attach PortForward", "RunPodSandbox"
	lost := withoutManifest(string(guard))
	manifest := func(match string) string {
		return manifestFirst(lost, `{"name": "exec-guard", "version": "1.0.0", "hooks": [{"hook": "PreExec"`+match+`}, "PostExec"]}`)
	}
	for _, test := range []struct{ name, json, module, refused string }{
		{"hooks of its manifest", `{"failure-policy": "Fail"}`, string(guard), own},
		{"a manifest that only a function tells", `{"failure-policy": "Fail"}`, lost, making},
		{"hooks in its file", `{"failure-policy": "Fail", "runtime-hooks": ["PreAttach"]}`, string(guard), "Attach"},
		{"no hooks in its file", `{"failure-policy": "Fail", "runtime-hooks": []}`, string(guard), ""},
		{"a match in its file", `{"failure-policy": "Fail", "match": {"namespaces": ["prod"]}}`, string(guard), ""},
		{"a match in its manifest", `{"failure-policy": "Fail"}`, manifest(`, "match": {"namespaces": ["!test"]}`), ""},
		{"a match in its manifest that fits", `{"failure-policy": "Fail"}`, manifest(`, "match": {"namespaces": ["test"]}`), "Exec"},
		{"under Ignore", `{}`, string(guard), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := caching(t)
			for _, name := range []string{"exec-guard", ""} { // without a manifest it has no name
				defer n.hold(name)()
			}
			n.put("20-quota.wasm", "quota")
			n.putRaw("10-guard.wasm", test.module)
			n.put("10-guard.json", test.json)
			n.start(daemon.Run)
			n.await("plugins active", "20-quota")
			if got := n.guarded(t); got != test.refused {
				t.Errorf("refused %q, want %q; log:\n%s", got, test.refused, n.log)
			}
		})
	}
}

// A plugin that was never loaded refuses nothing, whatever its files say or do not say.
func TestPluginThatWasNeverGoodRefusesNothing(t *testing.T) {
	guard, err := os.ReadFile("../../plugins-wasm/exec-guard/exec-guard.wasm")
	if err != nil {
		t.Fatal(err)
	}
	cut := string(guard[:len(guard)/2])
	for _, test := range []struct{ name, json, module, logged string }{
		{"a typo in its configuration", `{"failure-policy": "Fail", "config": {"lable": "tier=gold"}}`, string(guard), "plugin not loaded"},
		{"a typo in its file", `{"failure-policy": "Fail", "confg": {"label": "tier=gold"}}`, string(guard), "plugin file rejected"},
		{"a misspelt policy", `{"failure-policy": "fail"}`, string(guard), "plugin file rejected"},
		{"no JSON at all", `{"failure-policy": `, string(guard), "plugin file rejected"},
		{"another digest", `{"failure-policy": "Fail", "sha256": "` + strings.Repeat("0", 64) + `"}`, string(guard), "plugin file rejected"},
		{"a module cut short", `{"failure-policy": "Fail"}`, cut, "plugin not loaded"},
		{"no module", `{"failure-policy": "Fail", "wasm-module": "none.wasm"}`, "", "plugin file rejected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := newNode(t)
			n.put("20-quota.wasm", "quota")
			if test.module != "" {
				n.putRaw("10-guard.wasm", test.module)
			}
			n.put("10-guard.json", test.json)
			n.start(daemon.Run)
			n.await(test.logged, "10-guard")
			n.awaitPods("web")
			if got := n.guarded(t); got != "" {
				t.Errorf("refused %q; log:\n%s", got, n.log)
			}
		})
	}
}

// lose makes a plugin with policy Fail that refuses its hook, since its last good version cannot be loaded: the
// engine refuses it where an earlier one did not. It is for before the start.
func (n *node) lose(id string) {
	n.t.Helper()
	n.config.DataDir = filepath.Join(n.dir, "data")
	n.must(os.MkdirAll(n.config.DataDir, 0o700))
	store, err := lastgood.Open(n.config.DataDir)
	n.must(err)
	n.put(id+".json", `{"failure-policy": "Fail", "runtime-hooks": ["PreRunPodSandbox"]}`)
	n.put(id+".wasm", "missing-hook")
	list, problems := registry.Read(registry.Dirs{Plugins: n.config.PluginDir})
	n.must(errors.Join(problems...))
	for _, d := range list {
		if d.ID == id {
			n.must(store.Keep(lastgood.Version{Description: d, Since: time.Now()}))
		}
	}
}

// awaitPods runs pods until one starts: what refused it is no longer called.
func (n *node) awaitPods(name string) {
	n.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err = n.runPod(n.t.Context(), name); err == nil {
			return
		}
	}
	n.t.Errorf("no pod starts: %v", err)
}

// A plugin that had a good version refuses its hooks as long as that cannot be loaded, as the version says and not
// the files: until a version is loaded, or its files are removed.
func TestLastGoodVersionRefusesUntilItIsLoaded(t *testing.T) {
	n := newNode(t)
	n.config.AdminSocket = filepath.Join(n.dir, "admin.sock")
	n.put("20-quota.wasm", "quota")
	n.lose("10-guard")
	n.put("10-guard.json", `{"failure-policy": "Ignore", "runtime-h`)
	n.start(daemon.Run)
	n.await("plugin not loaded", "calls are refused in its hooks", "10-guard", "PreRunPodSandbox")
	n.await("plugins active", "20-quota", "refusing=[10-guard]")
	n.awaitProblem("plugin 10-guard: ", "10-guard.json: ", "; nor can its last good version be loaded: loading plugin 10-guard: ", "; its hooks are refused until")
	if got := n.guarded(t); got != "RunPodSandbox" {
		t.Errorf("refused %q; log:\n%s", got, n.log)
	}
	n.remove("10-guard.json")
	n.remove("10-guard.wasm")
	n.awaitActive("20-quota")
	if got := n.guarded(t); got != "" {
		t.Errorf("after its files were removed: refused %q", got)
	}
}
