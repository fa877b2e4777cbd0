package koord_test

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW11NotUTF8 creates a container one of whose variables is not UTF-8, as CRI
// allows, with a hook server that must not be passed by. The protocol cannot
// carry the value, so the server is not shown it; koord-runtime-proxy fails.
func TestW11NotUTF8(t *testing.T) {
	scenario{incumbent: "(?i)invalid UTF-8", run: func(n *node) error {
		server := n.serve("10-a.json", addVariable, "Fail", "PreCreateContainer")
		n.start()
		pod, err := n.runPod(podConfig())
		n.must(err)
		config := with(containerConfig(), func(c *cri.ContainerConfig) { c.Envs = envs("A", "1", "LATIN1", "caf\xe9", "B", "2") })
		if _, err := n.create(pod, config, podConfig()); err != nil {
			return n.well(err)
		}
		return join(
			want("sent", lastTold[*containerRequest](server, "PreCreateContainer").GetContainerEnvs(), map[string]string{"A": "1", "B": "2"}),
			wantProto("arrived", &cri.ContainerConfig{Envs: lastRequest[*cri.CreateContainerRequest](n.runtime).GetConfig().GetEnvs()},
				&cri.ContainerConfig{Envs: envs("A", "1", "LATIN1", "caf\xe9", "B", "2", "ADDED", "yes")}),
		)
	}}.test(t)
}

// addVariable echoes and adds a variable.
func addVariable(ctx context.Context, name string, req proto.Message) (proto.Message, error) {
	resp, err := echoing(ctx, name, req)
	if r, ok := resp.(*containerResponse); ok {
		if r.ContainerEnvs == nil {
			r.ContainerEnvs = map[string]string{}
		}
		r.ContainerEnvs["ADDED"] = "yes"
	}
	return resp, err
}
