package cgroup

import (
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

// TestPaths has the forms of real nodes: see testdata/cri for what the runtimes report.
func TestPaths(t *testing.T) {
	const (
		burstable = "/kubepods.slice/kubepods-burstable.slice"
		podU      = burstable + "/kubepods-burstable-pod11111111_2222.slice"
		nested    = "/a.slice/a-b.slice/a-b-kubepods.slice/a-b-kubepods-pod1.slice"
	)
	tests := []struct {
		parent     string
		pod        string
		containers []string // of the container abc
	}{
		{"/kubepods/burstable/pod1", "/kubepods/burstable/pod1", []string{"abc", "crio-abc"}},
		{"kubepods//burstable/./pod1/", "/kubepods/burstable/pod1", []string{"abc", "crio-abc"}},
		{"/kubepods/pod1", "/kubepods/pod1", []string{"abc", "crio-abc"}},
		{"/my/cgroup-root/kubepods/besteffort/pod1", "/my/cgroup-root/kubepods/besteffort/pod1", []string{"abc", "crio-abc"}},
		{podU, podU, []string{"cri-containerd-abc.scope", "crio-abc.scope", "docker-abc.scope"}},
		{"kubepods-burstable-pod11111111_2222.slice", podU, []string{"cri-containerd-abc.scope", "crio-abc.scope", "docker-abc.scope"}}, // as CRI-O reports it
		{podU + "/", podU, []string{"cri-containerd-abc.scope", "crio-abc.scope", "docker-abc.scope"}},
		{"a-b-kubepods-pod1.slice", nested, []string{"cri-containerd-abc.scope", "crio-abc.scope", "docker-abc.scope"}}, // kubelet's --cgroup-root=/a/b
		{`kubepods-pod1\x2d2.slice`, `/kubepods.slice/kubepods-pod1\x2d2.slice`, []string{"cri-containerd-abc.scope", "crio-abc.scope", "docker-abc.scope"}},
	}
	for _, tt := range tests {
		t.Run(tt.parent, func(t *testing.T) {
			if got, err := PodPath(tt.parent); err != nil || got != tt.pod {
				t.Errorf("pod %q, %v, want %q", got, err, tt.pod)
			}
			want := slices.Clone(tt.containers)
			for i := range want {
				want[i] = tt.pod + "/" + want[i]
			}
			if got, err := ContainerPaths(tt.parent, "abc"); err != nil || !slices.Equal(got, want) {
				t.Errorf("containers %q, %v, want %q", got, err, want)
			}
		})
	}
}

// TestQOSClassPath has kubelet's names of QoS classes with both drivers, whatever the runtime.
func TestQOSClassPath(t *testing.T) {
	for parent, want := range map[string]string{
		"/kubepods/pod1":                                "/kubepods",
		"kubepods/burstable/pod1/":                      "/kubepods/burstable",
		"/kubepods/besteffort/pod1":                     "/kubepods/besteffort",
		"/my/cgroup-root/kubepods/burstable/pod1":       "/my/cgroup-root/kubepods/burstable",
		"/my/cgroup-root/kubepods/pod1":                 "/my/cgroup-root/kubepods",
		"kubepods-pod1_2.slice":                         "/kubepods.slice",
		"/kubepods.slice/kubepods-pod1_2.slice":         "/kubepods.slice",
		"kubepods-burstable-pod1_2.slice":               "/kubepods.slice/kubepods-burstable.slice",
		"kubepods-besteffort-pod1_2.slice":              "/kubepods.slice/kubepods-besteffort.slice",
		"a-b-kubepods-pod1.slice":                       "/a.slice/a-b.slice/a-b-kubepods.slice", // kubelet's --cgroup-root=/a/b
		"a_b-kubepods-burstable-pod1.slice":             "/a_b.slice/a_b-kubepods.slice/a_b-kubepods-burstable.slice",
		"/x/kubepods.slice/kubepods-burstable-p1.slice": "/kubepods.slice/kubepods-burstable.slice", // the name alone decides
	} {
		if got, err := QOSClassPath(parent); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", parent, got, err, want)
		}
	}
	for parent, want := range map[string]abi.Errno{
		"": abi.NotFound, "/": abi.NotFound, "/pod1": abi.NotFound, "pod1.slice": abi.NotFound, "/pods/pod1": abi.NotFound, "/burstable/pod1": abi.NotFound,
		"/kubepods": abi.NotFound, "/kubepods/burstable": abi.NotFound, "/a/kubepods/besteffort": abi.NotFound, // the class itself: above it is more than its own
		"kubepods.slice": abi.NotFound, "kubepods-burstable.slice": abi.NotFound, "/kubepods/burstable/pod1.slice": abi.NotFound,
		"/kubepods/burstable/pod1/batch": abi.NotFound, "/mykubepods/pod1": abi.NotFound, "system-mykubepods-pod1.slice": abi.NotFound, "/kubepods/guaranteed/pod1": abi.NotFound,
		"/kubepods/..": abi.Invalid, "/kubepods/burstable/../../pod1": abi.Invalid, "kubepods--pod1.slice": abi.Invalid, "/kubepods/\x00": abi.Invalid,
	} {
		got, err := QOSClassPath(parent)
		if wantCode(t, err, want); got != "" {
			t.Errorf("%q: %q", parent, got)
		}
	}
	if _, err := QOSClassPath("/pods/pod1"); !strings.Contains(err.Error(), "the pod is not in a cgroup that kubelet makes for a QoS class") {
		t.Error(err)
	}
}

func TestPathsThatAreRefused(t *testing.T) {
	for _, parent := range []string{
		"", "/", ".", "/kubepods/..", "/kubepods/../../etc", "/kubepods\x00", "-.slice", ".slice", "a--b.slice", "-a.slice", "/a.slice/..", strings.Repeat("a-", 3000) + "a.slice",
	} {
		_, err := PodPath(parent)
		wantCode(t, err, abi.Invalid)
		_, err = ContainerPaths(parent, "abc")
		wantCode(t, err, abi.Invalid)
	}
	for _, id := range []string{"", "..", ".", "a/b", "a\x00", "/"} {
		_, err := ContainerPaths("/kubepods", id)
		wantCode(t, err, abi.Invalid)
	}
}

func TestReportedPath(t *testing.T) {
	for reported, want := range map[string]string{
		"/kubepods/pod1/crio-a":                       "/kubepods/pod1/crio-a",
		"kubepods-burstable-pod1_2.slice:crio:a":      "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/crio-a.scope",
		"kubepods-pod1.slice:cri-containerd:a":        "/kubepods.slice/kubepods-pod1.slice/cri-containerd-a.scope",
		"kubepods-pod1.slice:docker:a":                "/kubepods.slice/kubepods-pod1.slice/docker-a.scope",
		"kubepods-pod1.slice::a":                      "/kubepods.slice/kubepods-pod1.slice/a.scope",
		"kubepods-pod1.slice:x:kubepods-pod1-y.slice": "/kubepods.slice/kubepods-pod1.slice/kubepods-pod1-y.slice",
		":crio:a":                           "/system.slice/crio-a.scope",
		"/kubepods.slice/pod1/crio-a.scope": "/kubepods.slice/pod1/crio-a.scope",
		"/kubepods/pod1/a:b:c":              "/kubepods/pod1/a:b:c",
		"/":                                 "",
		"":                                  "",
		"/kubepods/../../etc":               "",
		"-.slice:crio:a":                    "",
		"kubepods:crio:a":                   "",
		"a.slice:..:..":                     "/a.slice/..-...scope",
		"a.slice:crio:\x00":                 "",
	} {
		got, err := ReportedPath(reported)
		wantCode(t, err, map[bool]abi.Errno{true: abi.Invalid}[want == ""])
		if got != want {
			t.Errorf("%q: %q, want %q", reported, got, want)
		}
	}
}

// What the runtimes report with the systemd driver is where systemd has the scope.
func TestRecordedSystemdPaths(t *testing.T) {
	const pod = "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice"
	files := must(filepath.Glob("../../testdata/cri/systemd/*.json"))(t)
	if len(files) != 3 {
		t.Fatalf("recordings: %q", files)
	}
	for _, file := range files {
		var entries []struct {
			Method   string
			Response struct {
				Status struct{ ID string }
				Info   struct{ Info string }
			}
		}
		if err := json.Unmarshal(must(os.ReadFile(file))(t), &entries); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			var info struct {
				RuntimeSpec struct{ Linux struct{ CgroupsPath string } }
				Config      struct {
					Linux struct {
						CgroupParent string `json:"cgroup_parent"`
					}
				}
			}
			if err := json.Unmarshal([]byte(e.Response.Info.Info), &info); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			group, err := ReportedPath(info.RuntimeSpec.Linux.CgroupsPath)
			groups := must(ContainerPaths(pod, e.Response.Status.ID))(t)
			if err != nil || !slices.Contains(groups, group) {
				t.Errorf("%s: %s is at %q, %v; want one of %q", file, info.RuntimeSpec.Linux.CgroupsPath, group, err, groups)
			}
			if parent := info.Config.Linux.CgroupParent; parent != "" {
				if got, err := PodPath(parent); err != nil || got != pod {
					t.Errorf("%s: %s is %q, %v", file, parent, got, err)
				}
			}
		}
	}
}

// A container is found under the name that its runtime gave it.
func TestFindContainer(t *testing.T) {
	for _, name := range []string{
		"kubepods/pod1/abc", "kubepods/pod1/crio-abc", "kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope",
		"kubepods.slice/kubepods-pod1.slice/crio-abc.scope", "kubepods.slice/kubepods-pod1.slice/docker-abc.scope",
	} {
		for _, version := range []int{1, 2} {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, map[int]string{1: "cpu"}[version], name), 0o755); err != nil {
				t.Fatal(err)
			}
			f := openMode(t, root, version)
			if got, exists, err := f.FindContainer("/"+path.Dir(name), "abc"); got != "/"+name || !exists || err != nil {
				t.Errorf("v%d %s: %q, %v, %v", version, name, got, exists, err)
			}
			if got, exists, err := f.FindContainer("/"+path.Dir(name), "none"); exists || err != nil || !strings.Contains(got, "none") {
				t.Errorf("v%d: a container without a cgroup is at %q, %v", version, got, err)
			}
		}
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
			wantCode(t, f.Write(t.Context(), tt.group, rules.CPUIdle, "1"), tt.code)
			_, err := f.Read(tt.group, rules.CPUIdle)
			wantCode(t, err, tt.code)
			if stat, err := f.Read(tt.group, "cpu.stat"); err == nil && tt.group != "/file" {
				t.Errorf("statistics %q of group %.80q", stat, tt.group)
			}
			if hold, err := f.SuspendForUpdate(t.Context(), tt.group, Update{}); tt.code == abi.NotFound {
				wantCode(t, hold.Restore(t.Context(), true), abi.OK)
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

// Before Linux 5.6 groups are opened in another way, which leaves the root as little.
func TestNothingLeavesTheRootOfOldKernels(t *testing.T) {
	f, _ := outside(t, 2)
	for group, want := range map[string]abi.Errno{
		pod: abi.OK, "/evil": abi.Denied, "/file": abi.Denied, pod + "/cpu.idle": abi.NotFound, "/none": abi.NotFound, strings.Repeat("a", 300): abi.Invalid,
	} {
		top := f.dirs[whole]
		for name, open := range map[string]func(rel string) (int, error){
			"openat2": func(rel string) (int, error) { return openBeneath(top, rel) },
			"os.Root": func(rel string) (int, error) { return openByRoot(top.Fd(), rel) },
		} {
			fd, err := open(must(clean(group))(t))
			if err == nil {
				err = unix.Close(fd)
			}
			if got := rules.CodeOf(err); (err != nil || want != abi.OK) && got != want {
				t.Errorf("%s of group %.20s: %v, want %v", name, group, err, want)
			}
		}
	}
}

// What opens groups while the tree is closed gets errors, and no other file that has the number of its directory by then. The
// race detector finds the latter.
func TestCloseWhileGroupsAreOpened(t *testing.T) {
	f, _ := outside(t, 2)
	var readers sync.WaitGroup
	opened := make(chan struct{}, 8)
	for range cap(opened) {
		readers.Go(func() {
			for fd, err := openBeneath(f.dirs[whole], "."); err == nil; fd, err = openBeneath(f.dirs[whole], ".") {
				unix.Close(fd)
				select {
				case opened <- struct{}{}:
				default:
				}
			}
		})
	}
	for range cap(opened) {
		<-opened
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	readers.Wait()
}

// FuzzGroup tries to leave the root by the names that a request or a runtime gives.
func FuzzGroup(f *testing.F) {
	for _, s := range []string{
		pod, "/evil", "../evil", "/", "", "a/../../b", "/evil/../evil", "\x00", "//.//", "a-b.slice", "a-b.slice:crio:x", "a.slice:../..:x", "..slice", "a.slice:x:../../b.slice",
		"../a.slice", "-.slice:..:..", ":::", "a.slice/../b.slice",
	} {
		f.Add(s, "abc")
	}
	f.Add(pod, "..")
	f.Add("\x000", "0")
	f.Add("a.slice", "../../x")
	f.Fuzz(func(t *testing.T, group, id string) {
		local := func(path string, err error) {
			if err != nil {
				return
			}
			rel := strings.TrimPrefix(path, "/")
			if rel == "" || rel == path || rel[0] == '/' || slices.Contains(strings.Split(rel, "/"), "..") || !filepath.IsLocal(rel) {
				t.Fatalf("%q, %q came out as %q", group, id, path)
			}
			if again, err := clean(path); err != nil || again != rel {
				t.Fatalf("%q came out as %q, and that as %q, %v", group, rel, again, err)
			}
		}
		local(PodPath(group))
		if class, err := QOSClassPath(group); err == nil && !isQOSClass(class) {
			t.Fatalf("%q has the QoS class %q", group, class)
		}
		local(QOSClassPath(group))
		local(ReportedPath(group))
		groups, err := ContainerPaths(group, id)
		for _, g := range groups {
			local(g, err)
		}
		if in, ok := groupIn("0::"+group+"\n", 2, "/", id); ok {
			local(in, nil)
		}
	})
}

// TestNothingLeavesTheRootByRename has somebody replace a group by a link to another
// directory, and back, while values are written to it.
func TestNothingLeavesTheRootByRename(t *testing.T) {
	f, sentinel := outside(t, 2)
	group := filepath.Join(f.path, pod)
	link := filepath.Join(f.path, "link")
	if err := os.Symlink(filepath.Dir(sentinel), link); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	done := make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, group, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE); err != nil {
				done <- err
				return
			}
		}
	}()
	written, refused := 0, 0
	for deadline := time.Now().Add(time.Minute); (written < 100 || refused < 100) && time.Now().Before(deadline); {
		switch err := f.Write(t.Context(), pod, rules.CPUIdle, "1"); {
		case err == nil:
			written++
		case errors.Is(err, abi.Denied):
			refused++
		default: // the link is a directory again when it is opened as a link
			wantCode(t, err, abi.NotFound)
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if written == 0 || refused == 0 {
		t.Errorf("%d writes and %d refusals: the race was not run", written, refused)
	}
	if b, err := os.ReadFile(sentinel); string(b) != "outside" {
		t.Errorf("the file outside holds %q, %v", b, err)
	}
}
