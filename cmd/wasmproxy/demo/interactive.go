package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/kubelet"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

//go:embed pod.yaml
var ownPod []byte

// lookEvery is how often the Pod's file is looked at.
const lookEvery = 300 * time.Millisecond

// node is the one that the demonstration pretends to be.
var node = kubelet.Node{CgroupVersion: 2, Memory: 16 << 30}

// interactive is a demonstration that stays up and runs a Pod, anew with every change of the
// plugin directory or of the Pod's file.
type interactive struct {
	*session
	file    string // of the Pod; "" is the demonstration's own
	text    []byte // of the file, as it was last read
	running *runningPod
}

// runningPod is what there is of the Pod in the runtime.
type runningPod struct {
	pod        string
	containers []string
}

// newInteractive makes the directory, and looks whether there is a Pod in the file.
func newInteractive(s *session, o Options) (*interactive, error) {
	h := &interactive{session: s, file: o.Pod}
	if _, _, err := h.read(); err != nil {
		return nil, err
	}
	front, err := filepath.Abs(o.Hold)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(front, 0o755); err != nil {
		return nil, fmt.Errorf("creating the demo directory, which must not exist yet: %w", err)
	}
	s.front = front
	return h, nil
}

// play gives the show, and then lets the user go on until ctx is done.
func (h *interactive) play(ctx context.Context) error {
	if err := h.session.play(ctx); err != nil {
		return err
	}
	if err := h.remove(ctx); err != nil {
		return err
	}
	h.take()
	h.changed = false
	h.printInstructions()
	h.brief = true // the requests are long, and in the user's own file
	for ctx.Err() == nil {
		h.rerun(ctx)
		h.await(ctx)
	}
	return nil
}

// printInstructions says what can be done now.
func (h *interactive) printInstructions() {
	h.title("6. Try your own plugin")
	h.line(bold, "you", "cp PLUGIN.wasm %s", filepath.Join(h.plugins(), "10-PLUGIN.wasm"))
	if h.file != "" {
		h.line(bold, "you", "edit %s", h.file)
	}
	h.line(bold, "demo", "runs the pod anew with every change; its cgroup files are in %s; Ctrl-C ends it", h.cgroups.Dir)
}

// rerun ends the Pod that runs and runs the one of the file. What goes wrong is
// said: the user wants to put it right.
func (h *interactive) rerun(ctx context.Context) {
	err := h.end(ctx)
	if err == nil {
		err = h.begin(ctx)
	}
	if err != nil && ctx.Err() == nil {
		h.line(red, "failed", "%s", err)
	}
}

// await prints what the proxy says until the active plugins or the Pod are others.
func (h *interactive) await(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		next := h.events.Next()
		for _, e := range h.take() {
			h.event(e)
		}
		if h.changed || h.edited() {
			h.changed = false
			return
		}
		select {
		case <-next:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// edited tells whether the Pod's file is another than was read. One that is being
// written may be gone for a moment.
func (h *interactive) edited() bool {
	if h.file == "" {
		return false
	}
	text, err := readPod(h.file)
	return err == nil && !bytes.Equal(text, h.text)
}

// read reads the Pod and its runtime handler.
func (h *interactive) read() (*kubelet.Pod, string, error) {
	h.text = ownPod
	if h.file != "" {
		text, err := readPod(h.file)
		if err != nil {
			return nil, "", err
		}
		h.text = text
	}
	p, handler, err := kubelet.Read(h.text)
	if err != nil {
		return nil, "", fmt.Errorf("reading the Pod of %s: %w", h.file, err)
	}
	return p, handler, nil
}

// maxPod is the most that is read of a Pod's file, in bytes: what etcd keeps of one at most.
const maxPod = 3 << 19

// readPod reads the file, again and again.
func readPod(path string) ([]byte, error) {
	text, err := regular.Read(path, maxPod, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return text, nil
}

// begin runs the Pod's sandbox and its containers; those that kubelet runs before the
// others have done their work at once.
func (h *interactive) begin(ctx context.Context) error {
	p, handler, err := h.read()
	if err != nil {
		return err
	}
	h.title(fmt.Sprintf("Pod %s/%s, %s", p.Metadata.Namespace, p.Metadata.Name, p.QoS()))
	pod, err := h.runPod(ctx, "RunPodSandbox", node.PodCgroup(p), node.RunPodSandbox(p, handler))
	if pod != "" {
		h.running = &runningPod{pod: pod}
	}
	if err != nil {
		return err
	}
	for i := range p.Spec.InitContainers {
		id, err := h.container(ctx, p, &p.Spec.InitContainers[i])
		if err != nil {
			return err
		}
		if _, err := h.kubelet.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id}); err != nil {
			return err
		}
	}
	for i := range p.Spec.Containers {
		if _, err := h.container(ctx, p, &p.Spec.Containers[i]); err != nil {
			return err
		}
	}
	return nil
}

func (h *interactive) container(ctx context.Context, p *kubelet.Pod, c *kubelet.Container) (id string, err error) {
	req, _ := node.CreateContainer(p, c, h.running.pod)
	created, _, err := request(ctx, h.session, "CreateContainer "+c.Name, h.kubelet.CreateContainer, req)
	if id = created.GetContainerId(); id != "" {
		h.running.containers = append(h.running.containers, id)
	}
	if err != nil {
		return "", err
	}
	_, _, err = request(ctx, h.session, "StartContainer "+c.Name, h.kubelet.StartContainer, &runtimeapi.StartContainerRequest{ContainerId: id})
	return id, err
}

// end ends the Pod that runs, if there is one.
func (h *interactive) end(ctx context.Context) error {
	if h.running == nil {
		return nil
	}
	was := h.running
	h.running = nil
	h.title("The pod ends")
	return h.session.end(ctx, was.pod, was.containers...)
}
