package node

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// ContainerdEndpoint is where containerd listens.
const ContainerdEndpoint = "unix:///run/containerd/containerd.sock"

// RegistryAddress is where the images must be served.
const RegistryAddress = "127.0.0.1:5000"

// startTimeout is how long a part may take until it answers. It takes well under a second.
const startTimeout = 30 * time.Second

// readyTimeout is how long a pod may take. It takes a second.
const readyTimeout = time.Minute

//go:embed containerd.toml
var containerdConfig string

//go:embed containerd-1.6.toml
var debianConfig string

//go:embed cni.conflist
var cniConfig []byte

// Containerd is a running containerd.
type Containerd struct {
	process *process
	config  string // file
}

// StartContainerd starts a containerd that holds nothing. When the test ends,
// its pods are removed, it is stopped, and its state is removed.
func StartContainerd(t testing.TB) *Containerd {
	t.Helper()
	config, err := writeContainerdConfig(t.TempDir())
	if err != nil {
		t.Fatalf("configuring containerd: %v", err)
	}
	c := &Containerd{config: config}
	t.Cleanup(func() {
		if err := c.remove(t); err != nil {
			t.Errorf("cleaning up after containerd: %v", err)
		}
	})
	c.start(t)
	return c
}

func (c *Containerd) start(t testing.TB) {
	t.Helper()
	w := isolation.Current()
	cmd := exec.Command(w.Program("containerd"), "--config", c.config)
	cmd.Env = append(os.Environ(), "PATH="+w.Bin()+":"+os.Getenv("PATH")) // it looks for its shim in PATH
	c.process = startProcess(t, "containerd", cmd)
	awaitCRI(t, ContainerdEndpoint, c.process.alive)
}

// Restart kills containerd and starts it again over the pods that it had.
func (c *Containerd) Restart(t testing.TB) {
	t.Helper()
	c.process.kill()
	c.start(t)
}

// remove leaves the next test a machine on which no containerd has run.
func (c *Containerd) remove(t testing.TB) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // the test's own has ended
	defer cancel()
	pods := DialCRI(t, ContainerdEndpoint).removePods(ctx)
	stopped := c.process.stop()
	errs := []error{pods, stopped, isolation.RemoveCgroup("kubepods"), isolation.RemoveCgroup("k8s.io")}
	for _, dir := range []string{"/run/containerd", "/var/lib/containerd", "/var/lib/cni", "/var/log/pods"} {
		errs = append(errs, unmountAll(dir), os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

func unmountAll(dir string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return err
	}
	for i := len(mounts) - 1; i >= 0; i-- {
		if err := unix.Unmount(mounts[i].Mountpoint, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmounting %s: %w", mounts[i].Mountpoint, err)
		}
	}
	return nil
}

// writeContainerdConfig writes the configuration, that of CNI, and for each
// registry of the images where to pull from instead. It returns the main file.
func writeContainerdConfig(dir string) (string, error) {
	var config bytes.Buffer
	debian, err := artifact.DebianContainerd()
	if err != nil {
		return "", err
	}
	text := containerdConfig
	if debian {
		text = debianConfig
	}
	err = template.Must(template.New("").Parse(text)).Execute(&config, struct{ Dir, Runc string }{
		dir, isolation.Current().Program("runc"),
	})
	if err != nil {
		return "", err
	}
	hosts := []byte(strings.ReplaceAll("server = 'http://REGISTRY'\n[host.'http://REGISTRY']\n", "REGISTRY", RegistryAddress))
	files := map[string][]byte{"config.toml": config.Bytes(), "cni/10-e2e.conflist": cniConfig}
	for _, registry := range image.Registries {
		files[filepath.Join("certs.d", registry, "hosts.toml")] = hosts
	}
	for name, data := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "config.toml"), nil
}
