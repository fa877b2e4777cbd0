package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const root = "../../.."

func TestGeneratedFilesAreInStep(t *testing.T) {
	if err := run(root, true, false); err != nil {
		t.Error(err)
	}
}

// A plugin that was built for the frozen tables must go on to work, so what they
// say stays true: they only grow.
func TestFrozenTablesStayTrue(t *testing.T) {
	frozen, err := os.ReadFile(filepath.Join(root, frozenPath))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimPrefix(string(frozen), frozenHeader), "\n")
	if len(lines) < 300 {
		t.Fatalf("%s has only %d lines", frozenPath, len(lines))
	}
	now := strings.Split(dump(), "\n")
	for _, line := range lines {
		if !slices.Contains(now, line) {
			t.Errorf("no longer true: %s", line)
		}
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"PostStopContainer": "post_stop_container", "ByPodUID": "by_pod_uid", "FeatureCgroupV2": "feature_cgroup_v2",
		"resources.cpu_quota": "resources_cpu_quota", "OK": "ok", "FeatureKV": "feature_kv", "TooLarge": "too_large",
	} {
		if got := snake(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"get_i64": "GetI64", "cri_raw": "CRIRaw", "kv_del": "KVDel"} {
		if got := camel(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}
