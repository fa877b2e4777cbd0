package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

func TestPaths(t *testing.T) {
	tests := []struct {
		parent, id, want string // want is the container's
		code             abi.Errno
	}{
		{"/kubepods/burstable/pod1", "abc", "/kubepods/burstable/pod1/abc", 0},
		{"kubepods//burstable/./pod1/", "abc", "/kubepods/burstable/pod1/abc", 0},
		{"/kubepods.slice/kubepods-pod1.slice", "abc", "", abi.Unsupported},
		{"kubepods-pod1.slice", "abc", "", abi.Unsupported},
		{"/kubepods.slice/kubepods-pod1.slice/", "abc", "", abi.Unsupported},
		{"", "abc", "", abi.Invalid},
		{"/", "abc", "", abi.Invalid},
		{"/kubepods/..", "abc", "", abi.Invalid},
		{"/kubepods/../../etc", "abc", "", abi.Invalid},
		{"/kubepods\x00", "abc", "", abi.Invalid},
		{"/kubepods", "", "", abi.Invalid},
		{"/kubepods", "..", "", abi.Invalid},
		{"/kubepods", ".", "", abi.Invalid},
		{"/kubepods", "a/b", "", abi.Invalid},
		{"/kubepods", "a\x00", "", abi.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.parent+" "+tt.id, func(t *testing.T) {
			got, err := ContainerPath(tt.parent, tt.id)
			wantCode(t, err, tt.code)
			if got != tt.want {
				t.Errorf("container path %q, want %q", got, tt.want)
			}
			if tt.code != abi.OK {
				return
			}
			podPath, err := PodPath(tt.parent)
			if err != nil || podPath != strings.TrimSuffix(tt.want, "/"+tt.id) {
				t.Errorf("pod path %q, %v", podPath, err)
			}
		})
	}
}

// outside makes a tree whose group "evil" is a link out of it, and returns the
// file that must keep its value.
func outside(t *testing.T, version int) (*FS, string) {
	t.Helper()
	f := tree(t, version, map[string]string{rules.CPUIdle: "0"})
	dir := t.TempDir()
	sentinel := filepath.Join(dir, "cpu.idle")
	if err := os.WriteFile(sentinel, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	top := f.path
	if version == 1 {
		top = filepath.Join(top, "cpu")
	}
	links := map[string]string{filepath.Join(top, "evil"): dir, filepath.Join(top, "file", "cpu.idle"): sentinel}
	if err := os.Mkdir(filepath.Join(top, "file"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, target := range links {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	return f, sentinel
}

func TestNothingLeavesTheRoot(t *testing.T) {
	for _, version := range []int{1, 2} {
		f, sentinel := outside(t, version)
		dots := strings.Repeat("../", 30) + filepath.Dir(sentinel)
		tests := []struct {
			group string
			code  abi.Errno
		}{
			{"/evil", abi.Denied},
			{"/kubepods/../evil", abi.Invalid},
			{"/file", abi.Denied},
			{dots, abi.Invalid},
			{"/" + dots, abi.Invalid},
			{pod + "/" + dots, abi.Invalid},
			{filepath.Dir(sentinel), abi.NotFound}, // an absolute path is one beneath the root
			{"", abi.Invalid},
			{"/", abi.Invalid},
			{"/./", abi.Invalid},
			{"..", abi.Invalid},
			{pod + "\x00", abi.Invalid},
			{pod + "/cpu.idle", abi.NotFound},
			{strings.Repeat("a", 300), abi.Invalid},
			{strings.Repeat("a/", 3000), abi.Invalid},
		}
		for _, tt := range tests {
			wantCode(t, f.Write(tt.group, rules.CPUIdle, "1"), tt.code)
			_, err := f.Read(tt.group, rules.CPUIdle)
			wantCode(t, err, tt.code)
			if stat, err := f.Get(tt.group, "cpu.stat"); err == nil && tt.group != "/file" {
				t.Errorf("statistics %q of group %.80q", stat, tt.group)
			}
			if hold, err := f.SuspendForUpdate(tt.group, Update{}); tt.code == abi.NotFound {
				wantCode(t, hold.Restore(true), abi.OK)
			} else {
				wantCode(t, err, tt.code)
			}
		}
		if b, err := os.ReadFile(sentinel); string(b) != "outside" {
			t.Errorf("v%d: the file outside holds %q, %v", version, b, err)
		}
		if len(f.groups) != 0 {
			t.Errorf("v%d: groups remembered: %v", version, f.groups)
		}
	}
}

// FuzzGroup tries to leave the root by the group's name.
func FuzzGroup(f *testing.F) {
	for _, s := range []string{pod, "/evil", "../evil", "/", "", "a/../../b", "/evil/../evil", "\x00", "//.//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, group string) {
		rel, err := clean(group)
		if err != nil {
			return
		}
		if rel == "" || rel[0] == '/' || slices.Contains(strings.Split(rel, "/"), "..") || !filepath.IsLocal(rel) {
			t.Fatalf("%q came out as %q", group, rel)
		}
		if again, err := clean(rel); err != nil || again != rel {
			t.Fatalf("%q came out as %q, and that as %q, %v", group, rel, again, err)
		}
	})
}
