package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// objects returns what the container runtime itself has of a pod.
func (l life) objects(ctx context.Context) ([]*cri.PodSandbox, []*cri.Container, error) {
	sandboxes, err := l.direct.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: l.selector()}})
	if err != nil {
		return nil, nil, err
	}
	containers, err := l.direct.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{LabelSelector: l.selector()}})
	if err != nil {
		return nil, nil, err
	}
	return sandboxes.Items, containers.Containers, nil
}

// checkRunning demands one running container in one sandbox, one of each name and attempt, each
// with what the hook server and the plugins set, and that the proxy knows them.
func (l life) checkRunning(ctx context.Context, quota string) error {
	sandboxes, containers, err := l.objects(ctx)
	if err != nil {
		return err
	}
	var ready, running []string // ids
	seen := map[string]bool{}
	for _, s := range sandboxes {
		if seen[fmt.Sprint(s.Metadata.Attempt)] || s.Annotations["hooked"] != "yes" {
			return fmt.Errorf("sandbox %s: it is the second one of its attempt, or was not changed by the hook server", s)
		}
		seen[fmt.Sprint(s.Metadata.Attempt)] = true
		if s.State == cri.PodSandboxState_SANDBOX_READY {
			ready = append(ready, s.Id)
		}
	}
	for _, c := range containers {
		name := fmt.Sprint(c.PodSandboxId, c.Metadata.Name, c.Metadata.Attempt)
		if seen[name] || c.Annotations["hooked"] != "yes" {
			return fmt.Errorf("container %s: it is the second one of its name and attempt, or was not changed by the hook server", c)
		}
		seen[name] = true
		if c.State == cri.ContainerState_CONTAINER_RUNNING {
			running = append(running, c.Id)
		}
	}
	if len(ready) != 1 || len(running) != 1 {
		return fmt.Errorf("the sandboxes %q are ready and the containers %q run, want one of each", ready, running)
	}
	return errors.Join(checkFiles(running[0], quota), l.checkExplained(ctx, ready[0], running[0]))
}

// checkFiles compares what the kernel has of a container.
func checkFiles(id, quota string) error {
	group, err := cgroupfs.Find(node.RuntimeKind().CgroupName(id))
	if err != nil {
		return err
	}
	for file, want := range map[string]string{"cpu/cpu.cfs_quota_us": quota, "cpu/cpu.cfs_burst_us": "20000"} {
		if got, err := cgroupfs.Read(group, file); err != nil || got != want {
			return fmt.Errorf("%s is %q, want %q (%v)", file, got, want, err)
		}
	}
	return nil
}

// checkExplained demands that the proxy has the running container of the pod.
func (l life) checkExplained(ctx context.Context, sandbox, container string) error {
	type object struct{ Name, ID, State string }
	var report struct {
		Pods []struct {
			object
			Containers []object
		}
	}
	if err := l.proxy.Ask(ctx, &report, "explain", "default/"+l.pod); err != nil {
		return err
	}
	for _, p := range report.Pods {
		if p.ID == sandbox && p.State == "ready" && slices.Equal(p.Containers, []object{{"main", container, "running"}}) {
			return nil
		}
	}
	return fmt.Errorf("the proxy explains %+v, and the runtime has sandbox %s and container %s", report.Pods, sandbox, container)
}

// checkStopped demands that nothing of the pod runs.
func (l life) checkStopped(ctx context.Context) error {
	sandboxes, containers, err := l.objects(ctx)
	if err != nil {
		return err
	}
	for _, s := range sandboxes {
		if s.State == cri.PodSandboxState_SANDBOX_READY {
			return fmt.Errorf("sandbox %s is ready", s.Id)
		}
	}
	for _, c := range containers {
		if c.State == cri.ContainerState_CONTAINER_RUNNING {
			return fmt.Errorf("container %s runs", c.Id)
		}
	}
	return nil
}

func (l life) checkRemoved(ctx context.Context) error {
	sandboxes, containers, err := l.objects(ctx)
	if err == nil && len(sandboxes)+len(containers) > 0 {
		err = fmt.Errorf("the runtime has %v and %v", sandboxes, containers)
	}
	return err
}

// checkStore demands that the proxy's store has as many pods and containers as the runtime.
func (c *cluster) checkStore(ctx context.Context) error {
	var status struct {
		NotReady []string
		Store    struct {
			State            string
			Pods, Containers int
		}
	}
	if err := c.proxy.Ask(ctx, &status, "status"); err != nil {
		return err
	}
	sandboxes, err := c.direct.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	containers, err := c.direct.ListContainers(ctx, &cri.ListContainersRequest{})
	if err != nil {
		return err
	}
	if s := status.Store; s.State != "filled" || s.Pods != len(sandboxes.Items) || s.Containers != len(containers.Containers) || len(status.NotReady) > 0 {
		return fmt.Errorf("the proxy has %+v, and the runtime has %d sandboxes and %d containers", status, len(sandboxes.Items), len(containers.Containers))
	}
	return nil
}

// checkLeft demands that there is one process of the program, and no record of a pod.
func (c *cluster) checkLeft() error {
	processes, err := processesOf(isolation.Current().Program("wasmproxy"))
	if err != nil {
		return err
	}
	if want := []string{fmt.Sprint(c.proxy.PID())}; !slices.Equal(processes, want) {
		return fmt.Errorf("wasmproxy runs as the processes %q, want %q", processes, want)
	}
	journal, err := os.ReadFile(filepath.Join(c.proxy.StateDir, "journal"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	type object struct{ Pod, Container string }
	last := map[object]string{} // what the journal says of each, which is nothing of one that is gone
	for text := range bytes.Lines(journal) {
		var line struct {
			object
			Values json.RawMessage
		}
		if err := json.Unmarshal(text, &line); err != nil {
			return fmt.Errorf("the journal has %q: %w", text, err)
		}
		last[line.object] = string(line.Values)
	}
	maps.DeleteFunc(last, func(_ object, values string) bool { return values == "" })
	if len(last) > 0 {
		return fmt.Errorf("the state directory has %v after the last pod", last)
	}
	return nil
}

// processesOf returns the ids of the processes of a program.
func processesOf(program string) (ids []string, err error) {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		if file, err := os.Readlink(link); err == nil && file == program {
			ids = append(ids, strings.Split(link, "/")[2])
		}
	}
	return ids, err
}
