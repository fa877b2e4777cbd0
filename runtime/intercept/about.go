package intercept

import (
	"strconv"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

// about is the call of an event: its messages as they are at the moment. The
// zero value is that of an event apart from calls.
type about struct {
	req, resp proto.Message // nil before there is one
}

// What requests have in common. No generated message has such a method for
// another purpose, among those that are hooked.
type (
	execRequest     interface{ GetCmd() []string }
	terminalRequest interface {
		GetTty() bool
		GetStdin() bool
	}
	timedRequest interface{ GetTimeout() int64 }
	imageRequest interface {
		GetImage() *runtimeapi.ImageSpec
	}
)

func (a about) int64(f abi.Field) (int64, bool) {
	switch f {
	case abi.EventTTY:
		r, ok := a.req.(terminalRequest)
		return flag(ok && r.GetTty()), ok
	case abi.EventStdin:
		r, ok := a.req.(terminalRequest)
		return flag(ok && r.GetStdin()), ok
	case abi.EventTimeout:
		if r, ok := a.req.(timedRequest); ok {
			return r.GetTimeout(), true
		}
	case abi.EventExitCode:
		r, ok := a.resp.(*runtimeapi.ExecSyncResponse)
		return int64(r.GetExitCode()), ok
	}
	return 0, false
}

func (a about) text(f abi.Field) (string, bool) {
	switch f {
	case abi.EventImage:
		if r, ok := a.req.(imageRequest); ok {
			return image(r.GetImage()), true
		}
	case abi.EventImageRef:
		r, ok := a.resp.(*runtimeapi.PullImageResponse)
		return r.GetImageRef(), ok
	case abi.EventLocation:
		return a.location()
	}
	return "", false
}

// location is where an archive is read from or written to.
func (a about) location() (string, bool) {
	switch r := a.req.(type) {
	case *runtimeapi.CheckpointContainerRequest:
		return r.GetLocation(), true
	case *runtimeapi.CheckpointPodRequest:
		return r.GetOutputPath(), true
	case *runtimeapi.RestorePodRequest:
		return r.GetCheckpointPath(), true
	}
	return "", false
}

func (a about) list(f abi.Field) ([]string, bool) {
	switch f {
	case abi.EventCommand:
		if r, ok := a.req.(execRequest); ok {
			return r.GetCmd(), true
		}
	case abi.EventPorts:
		r, ok := a.req.(*runtimeapi.PortForwardRequest)
		return each(r.GetPort(), func(port int32) string { return decimal(int64(port)) }), ok
	}
	return nil, false
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
