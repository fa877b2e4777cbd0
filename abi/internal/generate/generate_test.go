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
	lines := strings.Split(string(frozen), "\n")
	if len(lines) < 300 {
		t.Fatalf("%s has only %d lines", frozenPath, len(lines))
	}
	g, err := newGenerator(root)
	if err != nil {
		t.Fatal(err)
	}
	text, err := g.file(frozenPath)
	if err != nil {
		t.Fatal(err)
	}
	now := strings.Split(string(text), "\n")
	for _, line := range lines {
		if !slices.Contains(now, line) {
			t.Errorf("no longer true: %s", line)
		}
	}
}

// A part that a file lacks, has in another place or has besides those of its template is
// an error, not left alone.
func TestMergeWantsEachPartInItsPlace(t *testing.T) {
	const a, b = "<!-- table: a -->\n| 1 |\n\n", "<!-- table: b -->\n| 2 |\n\n"
	got, err := merge("# Title\n\n"+a+"Text.\n"+b+"End.\n", strings.ReplaceAll(a+b, "|", "$1"))
	if want := "# Title\n\n<!-- table: a -->\n$1 1 $1\n\nText.\n<!-- table: b -->\n$1 2 $1\n\nEnd.\n"; string(got) != want || err != nil {
		t.Errorf("got %q, error %v, want %q", got, err, want)
	}
	for _, text := range []string{a, b + a, a + b + a, ""} {
		if _, err := merge(text, a+b); err == nil {
			t.Errorf("no error for %q", text)
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
