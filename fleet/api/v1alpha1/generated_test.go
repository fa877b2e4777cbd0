package v1alpha1_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestGeneratedIsCurrent makes the CRDs and deep copies again, and compares them with those that are committed.
func TestGeneratedIsCurrent(t *testing.T) {
	const crds = "../../../deploy/kustomize/fleet/crds"
	dir := t.TempDir()
	cmd := exec.Command("go", "tool", "-modfile=../../tools/go.mod", "controller-gen", "object", "crd:crdVersions=v1", "paths=.",
		"output:crd:dir="+dir, "output:object:dir="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("running controller-gen: %v\n%s", err, out)
	}
	made, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(made) != 3 {
		t.Errorf("controller-gen has made %d files, not two CRDs and the deep copies", len(made))
	}
	for _, f := range made {
		committed := f.Name()
		if filepath.Ext(committed) == ".yaml" {
			committed = filepath.Join(crds, committed)
		}
		want, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if has, err := os.ReadFile(committed); err != nil || !bytes.Equal(has, want) {
			t.Errorf("%s is not what controller-gen makes of the types: run `go generate ./api/...` in fleet (%v)", committed, err)
		}
	}
}
