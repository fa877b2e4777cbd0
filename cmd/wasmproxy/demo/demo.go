package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
)

// burstCap is a second plugin, written by hand in burstcap.wat: it wants every
// container's CPU burst at 10 ms, which qos may want otherwise.
//
//go:embed burstcap.wasm
var burstCap []byte

// patience is how long the demonstration waits for anything.
const patience = 20 * time.Second

// Run plays the demonstration and prints it to w. It fails if the proxy did not
// do what is shown.
func Run(ctx context.Context, w io.Writer, colour bool) error {
	dir, err := os.MkdirTemp("", "wasmproxy-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &stage{narrator: &narrator{w: w, colour: colour}, dir: dir, journal: newJournal()}
	ended, err := s.open(ctx)
	if err != nil {
		return err
	}
	err = s.play(ctx)
	cancel()
	return errors.Join(err, <-ended, s.kubeletConn.Close())
}

// stage is everything that takes part.
type stage struct {
	*narrator
	dir         string
	journal     *journal
	runtime     *memoryRuntime
	kubeletConn *grpc.ClientConn
	kubelet     runtimeapi.RuntimeServiceClient
	installed   []string // plugins, in their order
}

func (s *stage) path(name string) string { return filepath.Join(s.dir, name) }

// open starts the runtime and the proxy, and connects as kubelet does. The
// channel tells how the proxy ended.
func (s *stage) open(ctx context.Context) (<-chan error, error) {
	for _, dir := range []string{"plugins.d", "hookserver.d", "cgroup"} {
		if err := os.Mkdir(s.path(dir), 0o755); err != nil {
			return nil, err
		}
	}
	s.runtime = newMemoryRuntime(s.path("cgroup"))
	if err := s.runtime.start(ctx, s.path("runtime.sock")); err != nil {
		return nil, err
	}
	c := &config.Config{
		Listen: s.path("kubelet.sock"), Backend: s.path("runtime.sock"), PluginDir: s.path("plugins.d"), HookDir: s.path("hookserver.d"),
		CgroupRoot: s.path("cgroup"), CgroupMode: "v2", DrainTimeout: patience,
	}
	ended, err := s.serve(ctx, c)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("unix://"+c.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	s.kubeletConn, s.kubelet = conn, runtimeapi.NewRuntimeServiceClient(conn)
	return ended, err
}

// serve starts the proxy and waits until it serves.
func (s *stage) serve(ctx context.Context, c *config.Config) (<-chan error, error) {
	ended := make(chan error, 1)
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	go func() {
		ended <- daemon.Run(ctx, c, slog.New(s.journal))
		cancel() // what has ended will never serve
	}()
	if _, err := s.journal.wait(waiting, "serving", "listen", c.Listen); err != nil {
		select {
		case reason := <-ended:
			return nil, errors.Join(err, reason)
		default:
			return nil, err
		}
	}
	return ended, nil
}

// install drops a plugin into the directory as an operator would, whole at
// once, and waits until the proxy has it.
func (s *stage) install(ctx context.Context, id string, module []byte) error {
	s.line(yellow, "operator", "cp %s.wasm plugins.d/   (%d KiB; the proxy keeps running)", id, (len(module)+1023)/1024)
	draft := s.path(id + ".part")
	if err := os.WriteFile(draft, module, 0o644); err != nil {
		return err
	}
	if err := os.Rename(draft, filepath.Join(s.path("plugins.d"), id+".wasm")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	loaded, err := s.journal.wait(ctx, "plugin loaded", "plugin", id)
	if err != nil {
		return err
	}
	s.installed = append(s.installed, id)
	if _, err := s.journal.wait(ctx, "plugins in force", "plugins", fmt.Sprint(s.installed)); err != nil {
		return err
	}
	s.line(yellow, "proxy", "plugin loaded: %s %s, hooks %s, in %s", loaded.attrs["name"], loaded.attrs["version"], loaded.attrs["hooks"], loaded.attrs["took"])
	return nil
}

// tell says what came of one call: what kubelet asked, what plugins did, what
// the runtime got, which cgroup files are different.
func (s *stage) tell(name string, asked proto.Message, call func() error) (told, error) {
	before, err := snapshot(s.path("cgroup"))
	if err != nil {
		return told{}, err
	}
	s.journal.take()
	s.line(bold, "kubelet", "%s", s.paint(bold, name))
	s.request(asked)
	if err := call(); err != nil {
		return told{}, fmt.Errorf("%s: %w", name, err)
	}
	t := told{records: s.journal.take()}
	for _, r := range t.records {
		s.record(r)
	}
	t.changed = s.difference(asked, s.runtime.received(asked))
	if t.files, err = snapshot(s.path("cgroup")); err != nil {
		return told{}, err
	}
	s.files(before, t.files)
	return t, nil
}

// told is what came of a call.
type told struct {
	records []record
	changed bool              // the runtime got another request than kubelet sent
	files   map[string]string // the cgroup tree afterwards
}

// record prints what the proxy logged about plugins.
func (n *narrator) record(r record) {
	switch r.msg {
	case "plugin changed field":
		n.line(yellow, "plugin", "%s sets %s = %s", r.attrs["plugin"], r.attrs["field"], n.paint(bold, r.attrs["value"]))
	case "plugins conflict":
		n.line(yellow, "proxy", "conflict: plugin %s wants another value for %s than plugin %s, which came first and stays", r.attrs["plugin"], r.attrs["field"], r.attrs["first"])
	case "plugin failed and was ignored":
		n.line(yellow, "proxy", "plugin %s failed and was ignored (its policy): %s", r.attrs["plugin"], r.attrs["err"])
	}
}

func (t told) logged(msg string) bool {
	for _, r := range t.records {
		if r.msg == msg {
			return true
		}
	}
	return false
}
