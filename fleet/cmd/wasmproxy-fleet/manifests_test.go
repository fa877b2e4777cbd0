package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/fleet/controller"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/process/processtest"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
	"github.com/wasmproxy/wasmproxy/fleet/trust/trusttest"
)

// TestManifest checks the command of the controller's pod.
func TestManifest(t *testing.T) {
	processtest.Parse(t, command(), processtest.Command(t, "../../../deploy/kustomize/fleet/controller.yaml", "wasmproxy-fleet"))
}

// TestTolerates: in a new cluster all nodes have the taint that the controller removes, so its pod starts in spite of it.
func TestTolerates(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/kustomize/fleet/controller.yaml")
	var d appsv1.Deployment
	if err := errors.Join(err, yaml.UnmarshalStrict(text, &d)); err != nil {
		t.Fatal(err)
	}
	taint := &corev1.Taint{Key: controller.Taint, Value: "pending", Effect: corev1.TaintEffectNoSchedule}
	tolerates := func(one corev1.Toleration) bool { return one.ToleratesTaint(klog.Background(), taint, false) }
	if has := d.Spec.Template.Spec.Tolerations; !slices.ContainsFunc(has, tolerates) {
		t.Errorf("the controller's pod tolerates %+v", has)
	}
}

// TestPage checks the program's commands in docs/fleet.md.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^wasmproxy-fleet (.*)$`).FindAllSubmatch(text, -1)
	if len(lines) == 0 {
		t.Error("docs/fleet.md has no command")
	}
	for _, line := range lines {
		processtest.Parse(t, command(), strings.Fields(string(line[1])))
	}
}

// TestFilesOfThePage has the program read the trust file and the mirrors of docs/fleet.md.
func TestFilesOfThePage(t *testing.T) {
	text, err := os.ReadFile("../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	block := func(kind string) []byte {
		t.Helper()
		found := regexp.MustCompile("(?s)```yaml " + kind + "\n(.*?)```").FindSubmatch(text)
		if found == nil {
			t.Fatalf("docs/fleet.md has no block of %s", kind)
		}
		return found[1]
	}
	write("plugins.pub", trusttest.NewKey(t).Public(t))
	write("trusted_root.json", trusttest.NewSigstore(t).Root(t, true))
	if p, _, err := trust.NewFile(write("trust.yaml", block("trust"))).Policy(); p == nil || err != nil {
		t.Errorf("the trust file of docs/fleet.md: %v", err)
	}
	gone := "registry.example/p@sha256:" + strings.Repeat("a", 64)
	c := oci.Client{Mirrors: write("mirrors.yaml", block("mirrors"))}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Pull(ctx, gone); err == nil || strings.Contains(err.Error(), "reading the mirrors") {
		t.Errorf("the mirrors of docs/fleet.md: %v", err)
	}
}

// TestInterval: an interval of which no timer can be made is an error of the command line.
func TestInterval(t *testing.T) {
	cmd := command()
	cmd.SetArgs([]string{"controller", "--interval=0"})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	if err := cmd.Execute(); err == nil || !strings.HasPrefix(err.Error(), "--interval: must be greater than 0") {
		t.Error(err)
	}
}
