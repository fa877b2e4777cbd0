package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// burstCap is a second plugin, written by hand in burstcap.wat: it wants every
// container's CPU burst at 10 ms, which qos may want otherwise.
//
//go:embed burstcap.wasm
var burstCap []byte

// patience is how long the demonstration waits for anything.
const patience = 20 * time.Second

// Options say how the demonstration is given.
type Options struct {
	Colour bool
	// Hold is a directory that does not exist yet. The proxy stays up after the show,
	// with its plugin directory and the runtime's cgroups in there. Empty: it ends.
	Hold string
	// Pod is the file of the Pod that is run while the proxy stays up. Empty: one that
	// comes with the demonstration.
	Pod string
}

// Run plays the demonstration and prints it to w. It fails if the proxy did not
// do what is shown. What it makes on disk is gone afterwards.
func Run(ctx context.Context, w io.Writer, o Options) (err error) {
	dir, err := os.MkdirTemp("", "wasmproxy-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &session{printer: &printer{w: w, colour: o.Colour}, dir: dir, front: dir, events: &observe.Recorder{}}
	if o.Hold == "" {
		return s.run(ctx, s.play)
	}

	h := &interactive{session: s, file: o.Pod}
	if h.file != "" { // whether there is a Pod in it
		if _, _, err := h.read(); err != nil {
			return err
		}
	}
	if s.front, err = filepath.Abs(o.Hold); err != nil {
		return err
	}
	if err := os.Mkdir(s.front, 0o755); err != nil {
		return fmt.Errorf("creating the demo directory, which must not exist yet: %w", err)
	}
	defer os.RemoveAll(s.front)
	if h.file == "" {
		h.file = filepath.Join(s.front, "pod.yaml")
		if err := os.WriteFile(h.file, ownPod, 0o644); err != nil {
			return err
		}
	}
	return s.run(ctx, h.play)
}

// run starts the runtime and the proxy, connects as kubelet does, plays, and ends everything.
func (s *session) run(ctx context.Context, play func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	groups := filepath.Join(s.front, "cgroup")
	for _, dir := range []string{s.plugins(), s.path("hookserver.d"), groups} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	var err error
	if s.cgroups, err = simulate.NewCgroups(groups, 2); err != nil {
		return err
	}
	s.runtime = newMemoryRuntime(s.cgroups)
	if err := s.runtime.start(ctx, s.path("runtime.sock")); err != nil {
		return err
	}

	c := &config.Config{
		Listen: s.path("kubelet.sock"), Backend: s.path("runtime.sock"), PluginDir: s.plugins(), HookDir: s.path("hookserver.d"),
		CgroupRoot: groups, CgroupMode: "v2", DrainTimeout: patience, AdminSocket: filepath.Join(s.front, "admin.sock"),
	}
	ended := make(chan error, 1)
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	go func() {
		ended <- daemon.Run(ctx, c, s.events)
		stop() // what has ended will never serve
	}()
	if _, err := wait(waiting, s.events, func(e *observe.Serving) bool { return e.Listen == c.Listen }); err != nil {
		select {
		case reason := <-ended:
			return errors.Join(err, reason)
		default:
			return err
		}
	}
	conn, err := grpc.NewClient("unix://"+c.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	s.kubelet, s.images = runtimeapi.NewRuntimeServiceClient(conn), runtimeapi.NewImageServiceClient(conn)

	err = play(ctx)
	cancel()
	s.runtime.ends.Wait() // before its directory is removed
	return errors.Join(err, <-ended, conn.Close())
}

// session is everything that takes part.
type session struct {
	*printer
	cgroups    *simulate.Cgroups
	dir, front string            // where the sockets are, and what people look at
	events     *observe.Recorder // that are yet to be printed
	runtime    *memoryRuntime
	kubelet    runtimeapi.RuntimeServiceClient
	images     runtimeapi.ImageServiceClient
	installed  []string          // plugins, in their order
	brief      bool              // requests are not printed
	changed    bool              // other plugins are active than when that was looked at
	groups     map[string]string // the cgroup tree, as it was looked at last
}

func (s *session) path(name string) string { return filepath.Join(s.dir, name) }
func (s *session) plugins() string         { return filepath.Join(s.front, "plugins.d") }

// install drops a plugin into the directory as an operator would, whole at
// once, and waits until the proxy has it.
func (s *session) install(ctx context.Context, id string, module []byte) error {
	s.line(yellow, "operator", "cp %s.wasm plugins.d/   (%d KiB; the proxy keeps running)", id, (len(module)+1023)/1024)
	if err := regular.Replace(filepath.Join(s.plugins(), id+".wasm"), module, 0o644); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	loaded, err := wait(ctx, s.events, func(e *observe.PluginLoaded) bool { return e.Plugin == id })
	if err != nil {
		return err
	}
	s.installed = append(s.installed, id)
	if _, err := wait(ctx, s.events, func(e *observe.GenerationActive) bool { return slices.Equal(e.Plugins, s.installed) }); err != nil {
		return err
	}
	s.event(loaded)
	return nil
}

// wait returns the first event of a type for which match is true, or waits for it.
func wait[E observe.Event](ctx context.Context, events *observe.Recorder, match func(E) bool) (e E, err error) {
	found, err := events.Wait(ctx, func(e observe.Event) bool {
		of, ok := e.(E)
		return ok && match(of)
	})
	if err != nil {
		return e, fmt.Errorf("waiting for the proxy's event %T: %w", e, err)
	}
	return found.(E), nil
}

// request makes a call of kubelet's and says what came of it: what kubelet asked, what
// plugins did, what the runtime got, which cgroup files are different.
func request[Q, A proto.Message](
	ctx context.Context, s *session, name string,
	call func(context.Context, Q, ...grpc.CallOption) (A, error), asked Q,
) (answer A, t outcome, err error) {
	s.line(bold, "kubelet", "%s", s.paint(bold, name))
	for _, f := range simulate.Fields(asked) {
		// The pod's config, which comes again with each of its containers, was printed with the pod.
		if !s.brief && !strings.HasPrefix(f.Path, "sandbox_config.") {
			fmt.Fprintf(s.w, "           %s\n", s.paint(dim, f.Path+" = "+*f.Redacted().After))
		}
	}
	if err := s.look(s.brief); err != nil {
		return answer, t, err
	}
	for _, e := range s.take() {
		if s.brief {
			s.event(e)
		}
	}
	answer, failed := call(ctx, asked)
	t.events = s.take()
	for _, e := range t.events {
		s.event(e)
	}
	if failed != nil {
		return answer, t, fmt.Errorf("%s: %w", name, failed)
	}
	differ := simulate.Diff(asked, s.runtime.received(asked)) // as plugin run does
	for _, f := range differ {
		s.line(green, "runtime", "got %s", f.Redacted())
	}
	if t.changed = len(differ) > 0; !t.changed {
		s.line(green, "runtime", "got the request as kubelet sent it")
	}
	err = s.look(true)
	t.files = s.groups
	return answer, t, err
}

// look looks at the cgroup tree, and prints which files are different if that is wanted. What is used changes all the time.
func (s *session) look(print bool) error {
	files, err := s.cgroups.Files()
	empty := func(name string) bool { return files[name] == "" && s.groups[name] != "" }
	for range 20 { // a plain file that is being written is empty for a moment
		if err != nil || !slices.ContainsFunc(slices.Collect(maps.Keys(files)), empty) {
			break
		}
		time.Sleep(lookEvery / 10)
		files, err = s.cgroups.Files()
	}
	if err != nil {
		return err
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return path.Base(name) == cpuStatFile || path.Base(name) == cpuPressureFile })
	if print {
		for _, w := range simulate.Writes(s.groups, files) {
			s.line(cyan, "cgroup", "%s", w)
		}
	}
	s.groups = files
	return nil
}

// take takes the events that have come, and notes whether other plugins are active since.
func (s *session) take() []observe.Event {
	all := s.events.Take()
	for _, e := range all {
		switch e.(type) {
		case *observe.GenerationActive, *observe.NoPlugins:
			s.changed = true
		}
	}
	return all
}

// outcome is what came of a call.
type outcome struct {
	events  []observe.Event
	changed bool              // the runtime got another request than kubelet sent
	files   map[string]string // the cgroup tree afterwards
}
