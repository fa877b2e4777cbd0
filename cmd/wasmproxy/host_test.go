package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// image makes the files of a node that kubeadm has set up.
func image(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, content := range map[string]string{
		"var/lib/kubelet/config.yaml":          "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n",
		"var/lib/kubelet/instance-config.yaml": "containerRuntimeEndpoint: unix:///run/containerd/containerd.sock\n",
	} {
		file := filepath.Join(root, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// content returns each file of a directory with what it has, but for the record and the program: a record may know
// more than one way to the same files.
func content(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text := "a file"
		switch filepath.Base(path) {
		case "host.json", "wasmproxy":
		default:
			if d.Type()&fs.ModeSymlink != 0 {
				text, err = os.Readlink(path)
				break
			}
			var all []byte
			all, err = os.ReadFile(path)
			text = string(all)
		}
		fmt.Fprintf(&b, "%s: %s\n", strings.TrimPrefix(path, root), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestHostCommandsAtOnce: of 25 installations and 25 uninstallations at once each succeeds, and the node is as one of
// both leaves it.
func TestHostCommandsAtOnce(t *testing.T) {
	wasmproxy := filepath.Join(program(t), "wasmproxy")
	host := func(root, command string) error {
		out, err := exec.CommandContext(t.Context(), wasmproxy, "host", command, "--yes", "--root", root).CombinedOutput()
		if err != nil {
			return fmt.Errorf("host %s: %w\n%s", command, err, out)
		}
		return nil
	}
	root := image(t)
	uninstalled := content(t, root)
	if err := host(root, "install"); err != nil {
		t.Fatal(err)
	}
	installed := content(t, root)
	if err := host(root, "uninstall"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if err := host(root, []string{"install", "uninstall"}[i%2]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := content(t, root); got != installed && got != uninstalled {
		t.Errorf("the node is neither installed nor as it was before:\n%s", got)
	}
	if err := host(root, "uninstall"); err != nil {
		t.Error(err)
	}
	if got := content(t, root); got != uninstalled {
		t.Errorf("after another uninstallation the node has\n%s", got)
	}
}

// TestHostCommandsWait: a run says what it waits for, and changes nothing if that does not end. One that shows changes
// only does not wait.
func TestHostCommandsWait(t *testing.T) {
	root := image(t)
	before := content(t, root)
	other, err := os.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := unix.Flock(int(other.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	host := func(ctx context.Context, args ...string) (code int, stdout, stderr string) {
		var out, errs strings.Builder
		code = run(ctx, newRoot(""), append([]string{"host", "install", "--root", root}, args...), &out, &errs)
		return code, out.String(), errs.String()
	}
	if code, out, stderr := host(t.Context(), "--dry-run"); code != 0 || !strings.Contains(out, "this was a dry run") {
		t.Errorf("exit code %d, %s%s", code, out, stderr)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	want := "waiting for another wasmproxy host command, which has locked " + root
	if code, out, stderr := host(ctx, "--yes"); code == 0 || out != want+"\n" || !strings.Contains(stderr, want+": context deadline exceeded; nothing was changed") {
		t.Errorf("exit code %d, %s%s", code, out, stderr)
	}
	if got := content(t, root); got != before {
		t.Errorf("the files are\n%s", got)
	}
}
