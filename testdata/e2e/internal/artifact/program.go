package artifact

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// Program is a program of a pinned module.
type Program struct {
	Name    string // of the file
	Module  string // directory below modules
	Package string // import path
	Of      string // module path of the package: its version goes into the program
	Tags    string
	Test    bool // the program is the package's test binary
	CGO     bool
	// Version lists the variables that take the version when linking.
	Version []string
}

// The programs of other projects.
var (
	containerd = Program{Name: "containerd", Package: "github.com/containerd/containerd/v2/cmd/containerd",
		Module: "containerd", Of: containerdModule, Tags: containerdTags, Version: containerdVersion}
	containerdShim = Program{Name: "containerd-shim-runc-v2", Package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
		Module: "containerd", Of: containerdModule, Tags: containerdTags, Version: containerdVersion}
	runc = Program{Name: "runc", Package: "github.com/opencontainers/runc",
		Module: "runc", Of: "github.com/opencontainers/runc",
		Tags: "seccomp urfave_cli_no_docs runc_nocriu", CGO: true, Version: []string{"main.version"}}
	crio = Program{Name: "crio", Package: "github.com/cri-o/cri-o/cmd/crio",
		Module: "crio", Of: "github.com/cri-o/cri-o", CGO: true,
		Tags: "seccomp containers_image_openpgp containers_image_ostree_stub exclude_graphdriver_btrfs exclude_graphdriver_devicemapper libsubid_stub"}
	criDockerd = Program{Name: "cri-dockerd", Package: "github.com/Mirantis/cri-dockerd",
		Module: "cri-dockerd", Of: "github.com/Mirantis/cri-dockerd",
		Version: []string{"github.com/Mirantis/cri-dockerd/cmd/version.Version"}}
	Crictl = Program{Name: "crictl", Package: "sigs.k8s.io/cri-tools/cmd/crictl",
		Module: "cri-tools", Of: "sigs.k8s.io/cri-tools", Version: []string{"sigs.k8s.io/cri-tools/pkg/version.Version"}}
	Critest = Program{Name: "critest", Package: "sigs.k8s.io/cri-tools/cmd/critest",
		Module: "cri-tools", Of: "sigs.k8s.io/cri-tools", Test: true}
	Cosign = Program{Name: "cosign", Package: "github.com/sigstore/cosign/v3/cmd/cosign",
		Module: "cosign", Of: "github.com/sigstore/cosign/v3", Version: []string{"sigs.k8s.io/release-utils/version.gitVersion"}}
	Registry = Program{Name: "registry", Package: "github.com/distribution/distribution/v3/cmd/registry",
		Module: "registry", Of: "github.com/distribution/distribution/v3", Version: []string{"github.com/distribution/distribution/v3/version.version"}}
)

const (
	containerdModule = "github.com/containerd/containerd/v2"
	containerdTags   = "urfave_cli_no_docs no_btrfs"
)

var containerdVersion = []string{"github.com/containerd/containerd/v2/version.Version"}

// Kubelet returns the kubelet that KUBELET_VERSION names, 1.36.3 unless set.
// Each version has a pinned module of its own.
func Kubelet() Program { return kubernetes("kubelet", kubernetesVersion()) }

// DockerKubelet returns the last kubelet that has dockershim.
func DockerKubelet() Program { return kubernetes("kubelet", "1.23.17") }

// APIServer returns kube-apiserver, of the same version as the kubelet, and the
// etcd that it is tested with.
func APIServer() []Program {
	server := kubernetes("kube-apiserver", kubernetesVersion())
	return []Program{server, {Name: "etcd", Package: etcdModule, Module: server.Module, Of: etcdModule}}
}

// ControllerManager returns kube-controller-manager, for tests that need some of Kubernetes' controllers. It may be one minor version
// older than the API server.
func ControllerManager() Program { return kubernetes("kube-controller-manager", "1.36.3") }

// E2ENode returns Kubernetes' tests of a node, of the same version as the kubelet, with the program that runs them in parallel
// and that of the image that most of them run.
func E2ENode() []Program {
	tests := kubernetes("e2e_node.test", kubernetesVersion())
	tests.Module, tests.Package, tests.Test = "e2e-node-"+kubernetesVersion(), "k8s.io/kubernetes/test/e2e_node", true
	agnhost := Program{Name: "agnhost", Package: "k8s.io/kubernetes/test/images/agnhost", Module: tests.Module, Of: tests.Of}
	const ginkgo = "github.com/onsi/ginkgo/v2"
	return []Program{tests, agnhost, {Name: "ginkgo", Package: ginkgo + "/ginkgo", Module: tests.Module, Of: ginkgo}}
}

// Kubectl returns the client of kube-apiserver's version 1.36.3, which speaks to the one before and after, too.
func Kubectl() Program { return kubernetes("kubectl", "1.36.3") }

const etcdModule = "go.etcd.io/etcd/server/v3"

func kubernetesVersion() string {
	return strings.TrimPrefix(cmp.Or(os.Getenv("KUBELET_VERSION"), "1.36.3"), "v")
}

func kubernetes(program, version string) Program {
	return Program{
		Name: program, Package: "k8s.io/kubernetes/cmd/" + program, Module: program + "-" + version, Of: "k8s.io/kubernetes",
		Version: []string{"k8s.io/component-base/version.gitVersion", "k8s.io/client-go/pkg/version.gitVersion"},
	}
}

// Programs puts links to the programs into dir, and builds those that the cache lacks.
func (b *Builder) Programs(ctx context.Context, dir string, programs ...Program) error {
	goVersion, err := output(ctx, b.modules(), "go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	for _, p := range programs {
		file, err := b.program(ctx, p, goVersion)
		if err != nil {
			return fmt.Errorf("building %s: %w", p.Name, err)
		}
		if err := os.Symlink(file, filepath.Join(dir, p.Name)); err != nil {
			return err
		}
	}
	return nil
}

// program returns the path of p in the cache, after building it if need be.
func (b *Builder) program(ctx context.Context, p Program, goVersion string) (string, error) {
	version, sums, err := b.pinned(p)
	if err != nil {
		return "", err
	}
	args := p.buildArgs(version)
	key := sha256.Sum256(fmt.Append(nil, goVersion, args, p.CGO, string(sums)))
	file := filepath.Join(b.cache, "bin", p.Name+"-"+version+"-"+hex.EncodeToString(key[:6]))
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	fmt.Fprintf(os.Stderr, "e2e: building %s %s ...\n", p.Name, version)
	start := time.Now()
	if err := b.build(ctx, p, args, file); err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "e2e: built %s in %.0f s\n", p.Name, time.Since(start).Seconds())
	return file, nil
}

// pinned reads which version the module pins, and all that pins its dependencies.
func (b *Builder) pinned(p Program) (version string, sums []byte, err error) {
	gomod := filepath.Join(b.modules(), p.Module, "go.mod")
	data, err := os.ReadFile(gomod)
	if err != nil {
		return "", nil, fmt.Errorf("no pinned module for it: %w", err)
	}
	mod, err := modfile.ParseLax(gomod, data, nil)
	if err != nil {
		return "", nil, err
	}
	sums, err = os.ReadFile(filepath.Join(b.modules(), p.Module, "go.sum"))
	if err != nil {
		return "", nil, err
	}
	for _, r := range mod.Require {
		if r.Mod.Path == p.Of {
			return r.Mod.Version, append(data, sums...), nil
		}
	}
	return "", nil, fmt.Errorf("%s does not require %s", gomod, p.Of)
}

func (p Program) buildArgs(version string) []string {
	args := []string{"build"}
	if p.Test {
		args = []string{"test", "-c"}
	}
	ldflags := "-s -w"
	for _, variable := range p.Version {
		ldflags += " -X " + variable + "=" + version
	}
	return append(args, "-trimpath", "-buildvcs=false", "-tags", p.Tags, "-ldflags", ldflags)
}

// build builds beside the file and renames, so that a build cut short leaves nothing under its name.
func (b *Builder) build(ctx context.Context, p Program, args []string, file string) error {
	cgo := "CGO_ENABLED=0"
	if p.CGO {
		cgo = "CGO_ENABLED=1"
	}
	unfinished := file + ".unfinished"
	args = append(args, "-o", unfinished, p.Package)
	if err := run(ctx, filepath.Join(b.modules(), p.Module), []string{cgo}, "go", args...); err != nil {
		return err
	}
	return os.Rename(unfinished, file)
}
