package faults_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/ptr"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// stageTimeout is how long a stage of a pod's life may take, with the fault in it. kubelet tries
// a failed pod again after some ten seconds.
const stageTimeout = 3 * time.Minute

// The CPU limits of a pod before and after its resize, and the quotas that follow from them.
const (
	firstCPU, firstQuota   = "250m", "25000"
	secondCPU, secondQuota = "500m", "50000"
)

// life is a pod on its way through the stages.
type life struct {
	*cluster
	pod     string
	mayStop <-chan struct{} // closed when all pods of a round may end
}

// stages are what a pod goes through: run begins one and awaits its end.
var stages = []struct {
	name       string
	run, await func(life, context.Context) error
}{
	start:  {"start", life.start, life.awaitRunning},
	resize: {"resize", life.resize, life.awaitResized},
	stop:   {"stop", life.stop, life.awaitGone},
	remove: {"remove", life.remove, life.remove},
}

func (l life) start(ctx context.Context) error {
	pod := &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: l.pod, Namespace: "default", Annotations: map[string]string{
			"qos.wasmproxy.io/cpu-burst": "20000",
			"overlay":                    `{"Annotations": {"hooked": "yes"}}`,
		}},
		Spec: core.PodSpec{
			NodeName: node.NodeName, HostNetwork: true, TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []core.Container{{Name: "main", Image: image.Busybox, Resources: resources(firstCPU), Command: node.Sleep}},
		},
	}
	if _, err := l.api.CoreV1().Pods("default").Create(ctx, pod, meta.CreateOptions{}); err != nil {
		return err
	}
	return l.awaitRunning(ctx)
}

func (l life) awaitRunning(ctx context.Context) error {
	return poll(ctx, stageTimeout, "the pod runs", func() error {
		now, err := l.status(ctx)
		if err != nil {
			return err
		}
		return errors.Join(node.Ready(now), l.checkRunning(ctx, firstQuota))
	})
}

func resources(cpu string) core.ResourceRequirements {
	list := func(cpu, memory string) core.ResourceList {
		return core.ResourceList{core.ResourceCPU: resource.MustParse(cpu), core.ResourceMemory: resource.MustParse(memory)}
	}
	return core.ResourceRequirements{Requests: list("50m", "16Mi"), Limits: list(cpu, "64Mi")}
}

func (l life) status(ctx context.Context) (*core.Pod, error) {
	return l.api.CoreV1().Pods("default").Get(ctx, l.pod, meta.GetOptions{})
}

// resize changes the CPU limit, and waits until kubelet reports that as done.
func (l life) resize(ctx context.Context) error {
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": "main", "resources": resources(secondCPU)},
	}}})
	if err != nil {
		return err
	}
	if _, err := l.api.CoreV1().Pods("default").Patch(ctx, l.pod, types.StrategicMergePatchType, patch, meta.PatchOptions{}, "resize"); err != nil {
		return err
	}
	return l.awaitResized(ctx)
}

func (l life) awaitResized(ctx context.Context) error {
	return poll(ctx, stageTimeout, "the pod is resized", func() error {
		now, err := l.status(ctx)
		if err != nil {
			return err
		}
		for _, c := range now.Status.Conditions {
			if (c.Type == core.PodResizePending || c.Type == core.PodResizeInProgress) && c.Status == core.ConditionTrue {
				return fmt.Errorf("%s: %s %s", c.Type, c.Reason, c.Message)
			}
		}
		return errors.Join(node.Ready(now), l.checkRunning(ctx, secondQuota))
	})
}

func (l life) stop(ctx context.Context) error {
	<-l.mayStop
	if err := l.api.CoreV1().Pods("default").Delete(ctx, l.pod, meta.DeleteOptions{}); err != nil {
		return err
	}
	return l.awaitGone(ctx)
}

func (l life) awaitGone(ctx context.Context) error {
	return poll(ctx, stageTimeout, "the pod is gone", func() error {
		now, err := l.status(ctx)
		switch {
		case apierrors.IsNotFound(err):
			return l.checkStopped(ctx)
		case err != nil:
			return err
		}
		return fmt.Errorf("its status is %+v", now.Status)
	})
}

// remove does at once what kubelet does within a minute: it removes the pod's sandboxes.
func (l life) remove(ctx context.Context) error {
	return poll(ctx, stageTimeout, "the pod's sandboxes are removed", func() error {
		sandboxes, err := l.through.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{Filter: &cri.PodSandboxFilter{LabelSelector: l.selector()}})
		if err != nil {
			return err
		}
		var errs []error
		for _, s := range sandboxes.Items {
			_, err := l.through.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: s.Id})
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return l.checkRemoved(ctx)
	})
}

func (l life) selector() map[string]string { return map[string]string{"io.kubernetes.pod.name": l.pod} }
