package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
	"github.com/wasmproxy/wasmproxy/fleet/trust/trusttest"
)

// parse has the program read a command line, without running it.
func parse(t *testing.T, args []string) {
	t.Helper()
	cmd, rest, err := command().Find(args)
	if err == nil {
		err = cmd.ParseFlags(rest)
	}
	if err == nil && cmd.Args != nil {
		err = cmd.Args(cmd, cmd.Flags().Args())
	}
	if err != nil {
		t.Errorf("%q: %v", args, err)
	}
}

// TestManifests checks the commands of the pods.
func TestManifests(t *testing.T) {
	for _, name := range []string{"agent", "controller"} {
		text, err := os.ReadFile(filepath.Join("../../../deploy/kustomize/fleet", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var workload struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct{ Command, Args []string }
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &workload); err != nil || len(workload.Spec.Template.Spec.Containers) != 1 {
			t.Fatalf("%s has %d containers (%v)", name, len(workload.Spec.Template.Spec.Containers), err)
		}
		c := workload.Spec.Template.Spec.Containers[0]
		if len(c.Command) != 1 || c.Command[0] != "/usr/bin/wasmproxy-fleet" || c.Args[0] != name {
			t.Errorf("the container of %s runs %q %q", name, c.Command, c.Args)
		}
		parse(t, c.Args)
	}
}

// TestPage checks the program's commands in docs/fleet.md, and the flags that it names.
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
		parse(t, strings.Fields(string(line[1])))
	}
	agent, _, _ := command().Find([]string{"agent"})
	for _, flag := range regexp.MustCompile("`--([a-z-]+)`").FindAllSubmatch(text, -1) {
		if agent.Flags().Lookup(string(flag[1])) == nil {
			t.Errorf("docs/fleet.md names the flag --%s, which the agent does not have", flag[1])
		}
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
