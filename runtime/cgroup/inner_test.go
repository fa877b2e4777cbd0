package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// crun has a container's processes in a group below the scope: a limit that is raised in the scope alone would not hold
// for them. What is cleared for an update would make the kernel refuse crun's write to that group. Some versions of crun
// write kubelet's limits there alone.
func TestGroupThatCrunMakesInAScope(t *testing.T) {
	const scope, innerGroup = "/kubepods.slice/kubepods-pod1.slice/crio-c1.scope", "container"
	f := tree(t, 2, map[string]string{"cpu.max": "max 100000"})
	held := func(group, file string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(f.path, scope, group, file))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for group, files := range map[string][]string{"": {"cpu.max", "cpu.max.burst", "pids.max", "cpu.weight"}, innerGroup: {"cpu.max", "cpu.max.burst", "cpu.weight"}, "other": {"cpu.max"}} {
		if err := os.MkdirAll(filepath.Join(f.path, scope, group), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if group == "" && file == "cpu.max" {
				if err := os.WriteFile(filepath.Join(f.path, scope, file), []byte("max 100000"), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			text := map[string]string{"cpu.max": "20000 100000", "cpu.max.burst": "0", "pids.max": "10", "cpu.weight": map[string]string{"": "50", innerGroup: "100"}[group]}[file]
			if err := os.WriteFile(filepath.Join(f.path, scope, group, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if quota, err := f.Read(scope, "cpu.max"); err != nil || quota != "20000 100000" {
		t.Errorf("cpu.max of the container is %q (%v)", quota, err)
	}
	if limit, err := f.Read(scope, "pids.max"); err != nil || limit != "10" { // the scope's alone
		t.Errorf("pids.max of the container is %q (%v)", limit, err)
	}
	if weight, err := f.Read(scope, "cpu.weight"); err != nil || weight != "50" {
		t.Errorf("cpu.weight of the container is %q (%v)", weight, err)
	}
	for file, value := range map[string]string{"cpu.max": "50000 100000", "pids.max": "20"} { // the group has no pids.max
		if err := f.Write(t.Context(), scope, file, value); err != nil {
			t.Fatal(err)
		}
	}
	if held("", "cpu.max") != "50000 100000" || held(innerGroup, "cpu.max") != "50000 100000" || held("other", "cpu.max") != "20000 100000" {
		t.Errorf("cpu.max is %q in the scope, %q in the group of the processes, %q in another", held("", "cpu.max"), held(innerGroup, "cpu.max"), held("other", "cpu.max"))
	}
	if err := f.Write(t.Context(), scope, "cpu.max.burst", "10000"); err != nil {
		t.Fatal(err)
	}
	hold, err := f.SuspendForUpdate(t.Context(), scope, Update{Quota: 5000})
	if err != nil {
		t.Fatal(err)
	}
	if held("", "cpu.max.burst") != "0" || held(innerGroup, "cpu.max.burst") != "0" {
		t.Errorf("during an update the burst is %q and %q", held("", "cpu.max.burst"), held(innerGroup, "cpu.max.burst"))
	}
	if err := hold.Restore(t.Context(), false); err != nil || held(innerGroup, "cpu.max.burst") != "10000" {
		t.Errorf("after it the burst is %q (%v)", held(innerGroup, "cpu.max.burst"), err)
	}
}
