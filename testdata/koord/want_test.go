package koord_test

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	hook "github.com/koordinator-sh/koordinator/apis/runtime/v1alpha1"
	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// hookResourcesMessage is the protocol's message of resources.
type hookResourcesMessage = hook.LinuxContainerResources

// hookResources are the resources() that a server gets.
func hookResources() *hookResourcesMessage {
	return &hookResourcesMessage{
		CpuPeriod: 100000, CpuQuota: 50000, CpuShares: 512, MemoryLimitInBytes: 128 << 20, OomScoreAdj: 900, CpusetCpus: "0-1", CpusetMems: "0",
		HugepageLimits: []*hook.HugepageLimit{{PageSize: "2MB"}}, Unified: map[string]string{"memory.high": "100000000"},
		MemorySwapLimitInBytes: 128 << 20,
	}
}

func runRequest() *cri.RunPodSandboxRequest {
	return &cri.RunPodSandboxRequest{Config: podConfig(), RuntimeHandler: "runc"}
}

// want returns an error unless got is as expected.
func want[T any](what string, got, expected T) error {
	if reflect.DeepEqual(got, expected) {
		return nil
	}
	return fmt.Errorf("%s: got %v, want %v", what, got, expected)
}

// wantProto is want for messages.
func wantProto(what string, got, expected proto.Message) error {
	if proto.Equal(got, expected) {
		return nil
	}
	return fmt.Errorf("%s: got {%v}, want {%v}", what, got, expected)
}

func wrong(format string, args ...any) error { return fmt.Errorf(format, args...) }

func join(errs ...error) error { return errors.Join(errs...) }

// settle waits until post hooks have run, which follow the answer.
func (n *node) settle() { time.Sleep(300 * time.Millisecond) }

// settled is settle, and returns what done says then. wasmproxy's post hooks are waited for until done is
// satisfied, however busy the machine is; koord-runtime-proxy may never satisfy it.
func (n *node) settled(done func() error) error {
	n.Helper()
	if n.proxy == wasmproxy {
		n.eventually("a post hook has run", done)
	}
	n.settle()
	return done()
}
