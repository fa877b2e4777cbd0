package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// workload is what the test reads of a manifest.
type workload struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct{ InitContainers, Containers []container }
		}
	}
}

type container struct {
	Args           []string
	Command        []string // of another program than wasmproxy
	Env            []struct{ Name, Value string }
	ReadinessProbe struct {
		Exec struct{ Command []string }
	}
}

// TestManifestCommands checks the names and flags of the commands that the DaemonSet's manifests run, in containers and in
// probes, and the names of owners.
func TestManifestCommands(t *testing.T) {
	files, err := filepath.Glob("../../deploy/kustomize/*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d workload
		if err := yaml.Unmarshal(text, &d); err != nil || d.Kind != "DaemonSet" {
			continue
		}
		for _, c := range slices.Concat(d.Spec.Template.Spec.InitContainers, d.Spec.Template.Spec.Containers) {
			if len(c.Command) > 0 {
				continue
			}
			for _, command := range [][]string{slices.Concat([]string{"wasmproxy"}, c.Args), c.ReadinessProbe.Exec.Command} {
				line := strings.Join(command, " ")
				for _, v := range c.Env {
					line = strings.ReplaceAll(line, "$("+v.Name+")", v.Value)
					if v.Name == "OWNER" && !ownerName.MatchString(v.Value) {
						t.Errorf("%s: plugin deliver refuses the owner %q", file, v.Value)
					}
				}
				if len(command) > 2 {
					checkLine(t, line)
					found[command[2]] = true
				}
				if strings.Contains(line, "$(") {
					t.Errorf("%s: %q has a variable that the container does not have", file, line)
				}
			}
		}
	}
	if !found["install"] || !found["uninstall"] || !found["deliver"] {
		t.Errorf("the commands that were found are %v", found)
	}
}
