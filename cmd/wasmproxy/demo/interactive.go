package demo

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/kubelet"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

//go:embed pod.yaml
var ownPod []byte

// lookEvery is how often the Pod's file is looked at.
const lookEvery = 300 * time.Millisecond

// node is the one that the demonstration pretends to be.
var node = kubelet.Node{CgroupVersion: 2, Memory: 16 << 30}

// interactive is a demonstration that stays up and runs a Pod. That goes on while plugins come and go, and is run anew when its
// file is saved.
type interactive struct {
	*session
	file    string    // of the Pod
	saved   time.Time // the file, as it was read last
	failed  bool      // the Pod could not be run
	running *runningPod
}

// runningPod is what there is of the Pod in the runtime.
type runningPod struct {
	pod        string
	containers []string
}

// play gives the show, takes out what that has installed, and then lets the user go on until ctx is done.
func (h *interactive) play(ctx context.Context) error {
	if err := h.session.play(ctx); err != nil {
		return err
	}
	for _, id := range h.installed {
		if err := os.Remove(filepath.Join(h.plugins(), id+".wasm")); err != nil {
			return err
		}
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, id := range h.installed {
		if _, err := wait(waiting, h.events, func(e *observe.PluginRemoved) bool { return e.Plugin == id }); err != nil {
			return err
		}
	}
	h.installed = nil
	if _, err := wait(waiting, h.events, func(*observe.NoPlugins) bool { return true }); err != nil {
		return err
	}
	h.take()
	h.changed = false
	h.title("6. Try your own plugin")
	h.line(bold, "you", "cp PLUGIN.wasm %s", filepath.Join(h.plugins(), "10-PLUGIN.wasm"))
	h.line(bold, "you", "edit %s, or only touch it: the pod is run anew", h.file)
	h.line(bold, "demo", "the pod goes on while plugins come and go; its cgroup files are in %s; Ctrl-C ends it", h.cgroups.Dir)
	h.brief = true // the requests are long, and in the user's own file
	for ctx.Err() == nil {
		err := h.begin(ctx)
		if h.failed = err != nil; h.failed && ctx.Err() == nil { // the user wants to put it right
			h.line(red, "failed", "%s", err)
		}
		h.await(ctx)
	}
	return nil
}

// await prints what the proxy says and what plugins make of the Pod, until its file is saved. A Pod that could not be run is tried
// again with other plugins, as kubelet does.
func (h *interactive) await(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		next := h.events.Next()
		for _, e := range h.take() {
			h.event(e)
		}
		if err := h.look(true); err != nil {
			h.line(red, "failed", "%s", err)
		}
		changed := h.changed
		h.changed = false
		info, err := os.Stat(h.file) // one that is being written may be gone for a moment
		edited := err == nil && !info.ModTime().Equal(h.saved)
		switch {
		case edited, changed && h.failed:
			return
		case changed:
			h.line(bold, "demo", "the pod goes on; touch %s to run it anew", h.file)
		}
		select {
		case <-next:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// read reads the Pod and its runtime handler.
func (h *interactive) read() (*kubelet.Pod, string, error) {
	if info, err := os.Stat(h.file); err == nil {
		h.saved = info.ModTime()
	}
	text, err := regular.Read(h.file, maxPod, nil)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", h.file, err)
	}
	p, handler, err := kubelet.Read(text)
	if err != nil {
		return nil, "", fmt.Errorf("reading the Pod of %s: %w", h.file, err)
	}
	return p, handler, nil
}

// maxPod is the most that is read of a Pod's file, in bytes: what etcd keeps of one at most.
const maxPod = 3 << 19

// begin ends the Pod that runs, if there is one, and then runs the sandbox and the containers of the one in the file; those that
// kubelet runs before the others have done their work at once.
func (h *interactive) begin(ctx context.Context) error {
	if was := h.running; was != nil {
		h.running = nil
		h.title("The pod ends")
		if err := h.end(ctx, was.pod, was.containers...); err != nil {
			return err
		}
	}
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

// container makes and starts a container, of an image that is pulled first.
func (h *interactive) container(ctx context.Context, p *kubelet.Pod, c *kubelet.Container) (id string, err error) {
	pull, always := node.PullImage(p, c)
	has, err := h.images.ImageStatus(ctx, &runtimeapi.ImageStatusRequest{Image: pull.Image})
	if err != nil {
		return "", err
	}
	image := has.GetImage().GetId()
	if has.Image == nil || always {
		pulled, _, err := request(ctx, h.session, "PullImage "+pull.Image.Image, h.images.PullImage, pull)
		if err != nil {
			return "", err
		}
		image = pulled.GetImageRef()
	}
	req, _ := node.CreateContainer(p, c, h.running.pod)
	req.Config.Image.Image = image
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
