package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	hook "github.com/koordinator-sh/koordinator/apis/runtime/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/runtimeproxy/resexecutor/cri"
	"github.com/koordinator-sh/koordinator/pkg/runtimeproxy/utils"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// executor is what koord-runtime-proxy makes for each call that it intercepts.
type executor interface {
	ParseRequest(criRequest any) (utils.CallHookPluginOperation, error)
	GenerateHookRequest() any
	UpdateRequest(hookResponse, criRequest any) error
	ResourceCheckPoint(criResponse any) error
}

// forwardAll takes calls through koord-runtime-proxy's own code in its own
// order: parse, hook, update, and remember what the runtime accepted. The ids
// that the runtime gives are "pod" and "container".
func forwardAll(r io.Reader, w io.Writer) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		method, encoded, _ := strings.Cut(lines.Text(), " ")
		b, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return err
		}
		sent, err := forward(method, b)
		if err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
		fmt.Fprintln(w, base64.StdEncoding.EncodeToString(sent))
	}
	return lines.Err()
}

func forward(method string, b []byte) ([]byte, error) {
	switch method {
	case "RunPodSandbox":
		return through(cri.NewPodResourceExecutor(), b, &runtimeapi.RunPodSandboxRequest{}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "pod"})
	case "CreateContainer":
		return through(cri.NewContainerResourceExecutor(), b, &runtimeapi.CreateContainerRequest{}, &runtimeapi.CreateContainerResponse{ContainerId: "container"})
	case "UpdateContainerResources":
		return through(cri.NewContainerResourceExecutor(), b, &runtimeapi.UpdateContainerResourcesRequest{}, &runtimeapi.UpdateContainerResourcesResponse{})
	}
	return nil, fmt.Errorf("no such method")
}

func through(e executor, b []byte, req, runtimeAnswer proto.Message) ([]byte, error) {
	if err := proto.Unmarshal(b, req); err != nil {
		return nil, err
	}
	if _, err := e.ParseRequest(req); err != nil {
		return nil, err
	}
	answer, err := overTheWire(e.GenerateHookRequest())
	if err != nil {
		return nil, err
	}
	if err := e.UpdateRequest(answer, req); err != nil {
		return nil, err
	}
	sent, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	return sent, e.ResourceCheckPoint(runtimeAnswer)
}

// overTheWire asks the hook server without a socket, but in copies as a socket
// would make: what is empty arrives as absent, and nothing is shared.
func overTheWire(request any) (any, error) {
	switch r := request.(type) {
	case *hook.PodSandboxHookRequest:
		answer, err := answerPod(proto.CloneOf(r))
		return copied(answer), err
	case *hook.ContainerResourceHookRequest:
		answer, err := answerContainer(proto.CloneOf(r))
		return copied(answer), err
	}
	return nil, fmt.Errorf("hook request of type %T", request)
}

func copied[M proto.Message](m M) M {
	b, err := proto.Marshal(m)
	if err != nil {
		panic(err) // it was made of strings that came over the wire
	}
	c := m.ProtoReflect().New().Interface().(M)
	if err := proto.Unmarshal(b, c); err != nil {
		panic(err)
	}
	return c
}
