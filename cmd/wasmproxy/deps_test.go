package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/wasmproxy/wasmproxy/"

// mayImport is the architecture: which of the module's packages each may
// import. A package that is not listed may import none.
var mayImport = map[string]string{
	"runtime/cri":              "abi",
	"runtime/proxy":            "runtime/cri runtime/observe runtime/regular",
	"runtime/docker":           "abi runtime/cri runtime/observe runtime/pods", // it asks the store which pod a container is in
	"runtime/observe":          "abi",
	"runtime/observe/audit":    "abi runtime/observe runtime/observe/tracing runtime/plugin",
	"runtime/observe/metrics":  "abi runtime/cri runtime/observe runtime/plugin runtime/status", // plugins count in types of runtime/plugin
	"runtime/observe/slogsink": "runtime/observe",
	"runtime/observe/tracing":  "runtime/cri runtime/observe",
	"runtime/plugin":           "abi runtime/cgroup/rules runtime/observe",
	"runtime/wasm":             "abi runtime/plugin runtime/wasm/binary runtime/wasm/codecache runtime/wasm/fuel runtime/wasm/pool runtime/wasm/preflight runtime/wasm/schema runtime/observe",
	"runtime/wasm/pool":        "runtime/plugin",
	"runtime/wasm/codecache":   "runtime/regular",
	"runtime/wasm/preflight":   "abi runtime/wasm/binary",
	"runtime/wasm/fuel":        "runtime/wasm/binary runtime/wasm/preflight",
	"runtime/remote":           "abi runtime/crifield runtime/plugin runtime/remote/runtimehook",
	"runtime/recording":        "abi abi/spelling runtime/plugin",
	"runtime/registry":         "abi runtime/plugin runtime/observe runtime/regular",
	"runtime/regular":          "",
	"runtime/delivery":         "abi runtime/plugin runtime/registry runtime/regular",
	"runtime/service":          "runtime/observe",
	"deploy/systemd":           "",
	"runtime/host":             "deploy/systemd runtime/admin runtime/bypass runtime/config runtime/dialect runtime/lastgood runtime/probation runtime/proxy runtime/regular runtime/status runtime/unitfile",
	"runtime/unitfile":         "",
	"runtime/doctor":           "runtime/dialect deploy/systemd runtime/admin runtime/bypass runtime/cgroup runtime/config runtime/docker runtime/host runtime/plugin runtime/proxy runtime/registry runtime/status",
	"runtime/peers":            "runtime/status",
	"runtime/pods":             "abi runtime/dialect runtime/cri", // the store follows the rows of cri.Methods
	"runtime/dialect":          "",
	"runtime/crifield":         "abi runtime/plugin runtime/pods",
	"runtime/cgroup":           "abi runtime/dialect runtime/cgroup/rules runtime/cgroup/systemd",
	"runtime/cgroup/systemd":   "",
	"runtime/cgroup/rules":     "abi runtime/dialect",
	"runtime/config":           "abi runtime/dialect runtime/plugin runtime/regular",
	"runtime/kubelet":          "",
	"runtime/explain":          "",
	"runtime/bypass":           "runtime/plugin runtime/regular",
	"runtime/status":           "",
	"runtime/nodefeatures":     "runtime/regular runtime/status",
	"runtime/admin":            "runtime/explain runtime/observe runtime/plugin runtime/recording runtime/status",
	"runtime/workqueue":        "runtime/observe",
	"runtime/enforce":          "abi runtime/dialect runtime/cgroup runtime/cgroup/rules runtime/crifield runtime/explain runtime/observe runtime/plugin runtime/pods runtime/workqueue runtime/regular",
	"runtime/intercept":        "abi runtime/dialect runtime/cgroup/rules runtime/cri runtime/crifield runtime/enforce runtime/observe runtime/plugin runtime/pods",
	"runtime/lastgood":         "abi runtime/observe runtime/registry runtime/regular runtime/workqueue",
	"runtime/probation":        "runtime/observe runtime/registry runtime/regular runtime/workqueue",
	"runtime/settings":         "runtime/config runtime/lastgood runtime/status",
	"runtime/backend":          "runtime/cgroup runtime/cgroup/rules runtime/crifield runtime/enforce runtime/observe runtime/pods runtime/status runtime/workqueue",
	"runtime/reconcile":        "runtime/backend runtime/cgroup runtime/cgroup/systemd runtime/config runtime/enforce runtime/intercept runtime/observe runtime/pods runtime/registry runtime/workqueue",
	"runtime/durable":          "runtime/observe runtime/plugin runtime/regular runtime/workqueue",
	"runtime/loader":           "abi runtime/config runtime/intercept runtime/observe runtime/observe/slogsink runtime/plugin runtime/registry runtime/remote runtime/wasm",
	"runtime/slots":            "abi runtime/admin runtime/bypass runtime/config runtime/cri runtime/delivery runtime/durable runtime/intercept runtime/lastgood runtime/loader runtime/observe runtime/plugin runtime/probation runtime/reconcile runtime/recording runtime/registry runtime/status runtime/wasm",
	"runtime/daemon":           "runtime/admin runtime/backend runtime/config runtime/docker runtime/explain runtime/loader runtime/nodefeatures runtime/observe runtime/observe/audit runtime/observe/metrics runtime/observe/tracing runtime/peers runtime/plugin runtime/pods runtime/probation runtime/proxy runtime/reconcile runtime/service runtime/settings runtime/slots runtime/status runtime/wasm",
	"runtime/simulate":         "abi runtime/dialect runtime/cgroup runtime/cri runtime/crifield sdk/fixture runtime/enforce runtime/intercept runtime/workqueue runtime/kubelet runtime/plugin runtime/pods runtime/recording runtime/observe runtime/observe/slogsink",
	"cmd/wasmproxy":            "abi/group abi runtime/settings runtime/doctor runtime/host plugins-wasm runtime/admin runtime/bypass runtime/status runtime/explain runtime/config runtime/daemon sdk/fixture runtime/delivery runtime/plugin runtime/recording runtime/registry runtime/simulate runtime/wasm sdk/conformance cmd/wasmproxy/demo cmd/wasmproxy/scaffold runtime/observe runtime/observe/slogsink runtime/regular",
	"cmd/wasmproxy/demo":       "plugins-wasm runtime/cgroup/rules runtime/config runtime/daemon runtime/kubelet runtime/simulate runtime/observe runtime/observe/slogsink runtime/regular",
	"abi/internal/generate":    "abi abi/group runtime/cgroup/rules",
	"abi/group":                "abi",
	"abi/spelling":             "abi",
	"sdk/fixture":              "abi sdk/internal/native", // the format of fixtures, which the proxy and plugins share
	"sdk":                      "abi sdk/internal/native",
	"sdk/json":                 "sdk",
	"sdk/glob":                 "",
	"sdk/image":                "sdk",
	"sdk/quantity":             "sdk",
	"sdk/internal/native":      "abi",
	"sdk/internal/calls":       "abi sdk",
	"sdk/internal/guest":       "sdk/fixture runtime/plugin runtime/simulate runtime/wasm", // for tests
	"sdk/conformance":          "abi abi/group abi/spelling sdk/fixture",                   // the vectors, and the kit that tests hosts
	"sdk/sdktest":              "abi sdk/fixture sdk/internal/native",
}

// onlyImporters are the packages that may import something from outside the module
// which the rest must not know: everything else goes through them.
var onlyImporters = map[string]string{
	"log/slog":                          "cmd/wasmproxy runtime/config runtime/observe/audit runtime/observe/slogsink sdk sdk/internal/native sdk/sdktest", // what happens is an event: see runtime/observe
	"github.com/tetratelabs/wazero":     "runtime/wasm",
	"github.com/santhosh-tekuri":        "runtime/wasm/schema",
	"k8s.io/cri-api":                    "runtime/cri runtime/docker runtime/crifield runtime/pods runtime/enforce runtime/intercept runtime/backend runtime/daemon runtime/kubelet runtime/simulate runtime/remote runtime/remote/runtimehook runtime/host runtime/doctor cmd/wasmproxy/demo",
	"github.com/knadh/koanf":            "runtime/config",
	"github.com/containerd/cgroups":     "runtime/cgroup",
	"github.com/opencontainers/cgroups": "runtime/cgroup runtime/cgroup/systemd",
	"github.com/coreos/go-systemd":      "runtime/cgroup/systemd runtime/observe/audit runtime/service",
	"gopkg.in/natefinch/lumberjack":     "runtime/observe/audit",
	"github.com/godbus/dbus":            "runtime/cgroup/systemd",
	"github.com/moby/sys/mountinfo":     "runtime/cgroup",
	"github.com/google/pprof":           "cmd/wasmproxy",
	"github.com/prometheus":             "runtime/observe/metrics",
	"go.opentelemetry.io":               "runtime/observe/tracing",
	"golang.org/x/net":                  "runtime/daemon",
	"github.com/lmittmann/tint":         "cmd/wasmproxy",
	"github.com/fsnotify/fsnotify":      "runtime/registry",
	"k8s.io/apimachinery":               "runtime/kubelet runtime/config runtime/registry",
	"go.yaml.in/yaml":                   "runtime/config",
	"sigs.k8s.io/yaml":                  "runtime/kubelet runtime/host runtime/doctor",
}

// standardOnly are the packages that plugin authors compile: TinyGo has to like
// what they import.
var standardOnly = append([]string{"sdk/internal/native"}, forPlugins...)

// forPlugins are the packages that plugins are made of.
var forPlugins = []string{"abi", "sdk", "sdk/glob", "sdk/image", "sdk/json", "sdk/quantity"}

type listed struct {
	ImportPath, Doc, Dir string
	Imports, GoFiles     []string
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if p.Doc == "" {
			t.Errorf("%s has no package comment", name)
		}
		for _, imported := range p.Imports {
			checkImport(t, name, imported)
		}
		for _, row := range strings.Fields(mayImport[name]) {
			if !slices.Contains(p.Imports, module+row) {
				t.Errorf("the row of %s has %s, which it does not import: remove it", name, row)
			}
		}
		for path, importers := range onlyImporters {
			if allowed(importers, name) && !slices.ContainsFunc(p.Imports, func(i string) bool { return strings.HasPrefix(i, path) }) {
				t.Errorf("the row of %s has %s, which does not import it: remove it", path, name)
			}
		}
	}
}

// TestNoLogHandlers holds that no code outside tests reads the proxy's log to learn what
// happened: it takes events.
func TestNoLogHandlers(t *testing.T) {
	for _, p := range packages(t) {
		for _, file := range p.GoFiles {
			code, err := os.ReadFile(filepath.Join(p.Dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(code, []byte("slog.Record")) {
				t.Errorf("%s/%s implements slog.Handler", p.ImportPath, file)
			}
		}
	}
}

func checkImport(t *testing.T, name, imported string) {
	t.Helper()
	if dep, ours := strings.CutPrefix(imported, module); ours {
		plugin := strings.HasPrefix(name, "plugins-wasm/") || strings.HasPrefix(name, "testdata/")
		if !allowed(mayImport[name], dep) && !(plugin && (slices.Contains(forPlugins, dep) || strings.HasPrefix(dep, "plugins-wasm/internal/"))) {
			t.Errorf("%s imports %s", name, dep)
		}
		return
	}
	for path, importers := range onlyImporters {
		if strings.HasPrefix(imported, path) && !allowed(importers, name) {
			t.Errorf("%s imports %s", name, imported)
		}
	}
	if slices.Contains(standardOnly, name) && (strings.Contains(imported, ".") || slices.Contains([]string{"reflect", "encoding/json", "fmt", "time", "sync"}, imported)) {
		t.Errorf("%s imports %s", name, imported)
	}
}

func allowed(list, name string) bool { return slices.Contains(strings.Fields(list), name) }

// packages lists the module, as it is built for the host.
func packages(t *testing.T) []listed {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports,Doc,Dir,GoFiles", module+"...").Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}
