// Package isolation runs a test binary in mount, network, pid and cgroup
// namespaces of its own, as root, so that a whole Kubernetes node can live and
// die inside one `go test` and the machine is as before afterwards: whatever
// happens to the tests, the kernel ends every process, mount and network device
// with the namespaces, and the first process removes the rest, which is one
// cgroup per hierarchy and one directory. Runs of different names can go on at a time.
//
// It knows nothing of Kubernetes and it is no security boundary.
//
// The test binary runs in three stages, each started by the one before:
//
//	outside  prepares (the machine's network is still there), makes the
//	         workspace and the cgroups, waits, removes them
//	init     process 1 of the pid namespace: joins the cgroups, reaps orphans
//	inside   mounts, network, then the tests
//
// On a machine that is the run's own, such as a virtual one, there is one stage, the tests. Somebody
// else has made the workspace and the node's address, serves the images, and takes the machine away.
package isolation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The variables that tell a stage what it is and where the workspace lies.
const (
	stageVariable     = "E2E_STAGE"
	workspaceVariable = "E2E_WORKSPACE"
)

const (
	stageInit    = "init"
	stageInside  = "inside"
	stageMachine = "machine"
	stageSysctls = "sysctls"
)

// Workspace is a directory of the run: everything the node writes is below it,
// and it is removed at the end.
type Workspace struct {
	Dir string // absolute
	Log string // directory of the processes' logs; it outlives the run
}

// Bin is the directory in which prepare puts the programs (or links to them).
func (w Workspace) Bin() string { return filepath.Join(w.Dir, "bin") }

// Program returns the path of one of the programs in Bin.
func (w Workspace) Program(name string) string { return filepath.Join(w.Bin(), name) }

// Path returns a path below the workspace.
func (w Workspace) Path(elem ...string) string {
	return filepath.Join(append([]string{w.Dir}, elem...)...)
}

// Current returns the workspace of the tests that run inside.
func Current() Workspace { return workspaceAt(os.Getenv(workspaceVariable)) }

// workspaceAt returns the workspace in a directory CACHE/run-NAME. Its logs are in CACHE/log-NAME.
func workspaceAt(dir string) Workspace {
	name := strings.TrimPrefix(filepath.Base(dir), "run-")
	return Workspace{Dir: dir, Log: filepath.Join(filepath.Dir(dir), "log-"+name)}
}

// OwnMachine returns the environment of a test binary that has a machine for itself. The workspace is
// a directory that ends in run-NAME.
func OwnMachine(workspace string) []string {
	return []string{stageVariable + "=" + stageMachine, workspaceVariable + "=" + workspace}
}

// OnOwnMachine reports whether this test binary has a machine for itself.
func OnOwnMachine() bool { return os.Getenv(stageVariable) == stageMachine }

// Stages are what a test binary has to do before its tests.
type Stages struct {
	// Name is of the run, and of its cgroup. Runs of one name come one after another.
	Name string
	// Cache is a directory on a disk file system; the workspace is made in it.
	Cache string
	// Outside runs first, with the machine's network, and fills the workspace's Bin.
	// It has the cache for itself.
	Outside func(context.Context, Workspace) error
	// Inside runs in the namespaces. Its context ends with the tests.
	Inside func(context.Context, Workspace) error
}

// Main is what a TestMain calls. It does not return.
func Main(m *testing.M, s Stages) {
	var code int
	var err error
	switch stage := os.Getenv(stageVariable); stage {
	case "":
		code, err = outside(s)
	case stageInit:
		code, err = initProcess(s.Name)
	case stageInside:
		code, err = inside(m, s)
	case stageSysctls:
		err = execWithSysctls(os.Args[1:])
	default:
		err = fmt.Errorf("%s: unknown stage %q", stageVariable, stage)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func inside(m *testing.M, s Stages) (int, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w := Current()
	if err := errors.Join(enterMounts(w), setUpNetwork()); err != nil {
		return 1, err
	}
	if err := s.Inside(ctx, w); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
