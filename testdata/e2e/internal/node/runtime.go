package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// RegistryAddress is where the images must be served.
const RegistryAddress = "127.0.0.1:5000"

// startTimeout is how long a part may take until it answers. It takes well under a second, unless the machine is busy.
const startTimeout = 2 * time.Minute

// readyTimeout is how long a pod may take. It takes a second.
const readyTimeout = time.Minute

// Kind is a kind of container runtime: how it is installed, run and removed, and
// what tests have to know of it.
type Kind struct {
	ID      string // by which E2E_RUNTIME names it
	Name    string // as CRI's Version answers
	Version string // how the version that CRI's Version answers begins

	Endpoint      string // where it listens
	ProxyEndpoint string // where wasmproxy listens before it

	cgroupPrefix string // comes before a container's id in the name of its cgroup
	scopePrefix  string // the same with the systemd driver

	// What it lacks of CRI.
	NoRuntimeConfig   bool // the call, and handlers in Status
	NoRuntimeHandlers bool // more than one
	NoHandlerInList   bool // a pod's runtime handler in ListPodSandbox

	// What it does not tell of a container as it was asked for.
	NoEnv       bool
	NoResources bool

	// Weights are those of cgroup v2, and their nice values, that it makes of CPU shares, by what runc makes of them.
	Weights map[string]string

	// mode is wasmproxy's, empty for CRI. Then these two do in its stead as is done with CRI.
	mode    string
	program string // of wasmproxy, if it is another than usual
	answers func(ctx context.Context, endpoint string) error
	clear   func(ctx context.Context) error // removes all pods and containers

	install   func(b *artifact.Builder, ctx context.Context, dir string) error
	configure func(dir string) error // writes its configuration
	parts     []part                 // in the order of their start
	state     []string               // its directories
	cgroups   []string               // beside those of pods
}

// CgroupName returns the name of the cgroup of a container or sandbox.
func (k Kind) CgroupName(id string) string {
	if CgroupDriver() == Systemd {
		return k.scopePrefix + id + ".scope"
	}
	return k.cgroupPrefix + id
}

// part is a process of a runtime.
type part struct {
	program string
	args    func(dir string) []string // dir has what configure wrote
	env     []string
	answers func(ctx context.Context) error // nil for the one that answers CRI
	stays   bool                            // when the runtime is restarted
}

// RuntimeKind returns the kind that E2E_RUNTIME names, containerd unless set.
func RuntimeKind() Kind {
	var ids []string
	for _, kind := range []Kind{containerd(), debianContainerd(), debianCrun(), crio(), dockerd(), docker()} {
		if kind.ID == cmp.Or(os.Getenv("E2E_RUNTIME"), containerdID) {
			return kind
		}
		ids = append(ids, kind.ID)
	}
	panic(fmt.Sprintf("E2E_RUNTIME is %q; it can be one of %q", os.Getenv("E2E_RUNTIME"), ids))
}

// Runtime is a running container runtime.
type Runtime struct {
	Kind
	config    string // directory
	processes []*process
}

// StartRuntime starts a container runtime that holds nothing. When the test ends,
// its pods are removed, it is stopped, and its state is removed.
func StartRuntime(t testing.TB) *Runtime {
	t.Helper()
	r := &Runtime{Kind: RuntimeKind(), config: t.TempDir()}
	r.processes = make([]*process, len(r.parts))
	if err := r.configure(r.config); err != nil {
		t.Fatalf("configuring %s: %v", r.Name, err)
	}
	t.Cleanup(func() {
		if err := r.remove(t); err != nil {
			t.Errorf("cleaning up after %s: %v", r.Name, err)
		}
	})
	for i := range r.parts {
		r.start(t, i)
	}
	return r
}

func (r *Runtime) start(t testing.TB, i int) {
	t.Helper()
	w, part := isolation.Current(), r.parts[i]
	cmd := exec.Command(w.Program(part.program), part.args(r.config)...)
	cmd.Env = append(os.Environ(), "PATH="+w.Bin()+":"+os.Getenv("PATH")) // they look for one another there
	cmd.Env = append(cmd.Env, part.env...)
	r.processes[i] = startProcess(t, part.program, cmd)
	if part.answers == nil {
		awaitCRI(t, r.Endpoint, r.processes[i].alive)
		return
	}
	Eventually(t, startTimeout, part.program+" answers", func() error {
		if err := r.processes[i].alive(); err != nil {
			t.Fatal(err)
		}
		return part.answers(t.Context())
	})
}

// await waits until an endpoint answers, and gives up when what listens there is no longer alive.
func (k Kind) await(t testing.TB, endpoint string, alive func() error) {
	t.Helper()
	if k.answers == nil {
		awaitCRI(t, endpoint, alive)
		return
	}
	Eventually(t, startTimeout, endpoint+" answers", func() error {
		if err := alive(); err != nil {
			t.Fatal(err)
		}
		return k.answers(t.Context(), endpoint)
	})
}

// Restart kills the runtime and starts it again over the pods that it had.
func (r *Runtime) Restart(t testing.TB) {
	t.Helper()
	r.Kill()
	r.StartAgain(t)
}

// Kill ends the runtime without warning. Its pods live on.
func (r *Runtime) Kill() {
	for i, part := range r.parts {
		if !part.stays {
			r.processes[i].kill()
		}
	}
}

// Signal sends a signal to the processes that Kill would end.
func (r *Runtime) Signal(s syscall.Signal) error {
	var errs []error
	for i, part := range r.parts {
		if !part.stays {
			errs = append(errs, r.processes[i].cmd.Process.Signal(s))
		}
	}
	return errors.Join(errs...)
}

// StartAgain starts a killed runtime over the pods that it had.
func (r *Runtime) StartAgain(t testing.TB) {
	t.Helper()
	for i, part := range r.parts {
		if !part.stays {
			r.start(t, i)
		}
	}
}

// remove leaves the next test a machine on which no runtime has run.
func (r *Runtime) remove(t testing.TB) error {
	ctx, cancel := context.WithTimeout(context.Background(), Slowly(time.Minute)) // the test's own has ended
	defer cancel()
	clear := r.clear
	if clear == nil {
		clear = DialCRI(t, r.Endpoint).removePods
	}
	errs := []error{clear(ctx)}
	for i := len(r.processes) - 1; i >= 0; i-- {
		if r.processes[i] != nil {
			errs = append(errs, r.processes[i].stop())
		}
	}
	errs = append(errs, removePodGroups())
	for _, group := range r.cgroups {
		errs = append(errs, isolation.RemoveCgroup(group))
	}
	for _, dir := range append([]string{"/var/lib/cni", "/var/log/pods"}, r.state...) {
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
