// Package processtest holds manifests and documents to the programs that they name.
package processtest

import (
	"os"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// Parse has a program read a command line, without running it.
func Parse(t *testing.T, program *cobra.Command, args []string) {
	t.Helper()
	cmd, rest, err := program.Find(args)
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

// Command returns the arguments of the one container of a manifest's pods, which runs this program.
func Command(t *testing.T, manifest, program string) []string {
	t.Helper()
	text, err := os.ReadFile(manifest)
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
		t.Fatalf("%s has %d containers (%v)", manifest, len(workload.Spec.Template.Spec.Containers), err)
	}
	c := workload.Spec.Template.Spec.Containers[0]
	if len(c.Command) != 1 || c.Command[0] != "/usr/bin/"+program {
		t.Errorf("the container of %s runs %q", manifest, c.Command)
	}
	return c.Args
}
