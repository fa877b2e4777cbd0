package koord_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW17LargeMessages sends and lists what kubelet and containerd take, up to
// 16 MiB. koord-runtime-proxy leaves gRPC's limit at 4 MiB.
func TestW17LargeMessages(t *testing.T) {
	const incumbent = "code = ResourceExhausted desc = grpc: received message larger than max"
	all := map[string]scenario{}
	for _, size := range []int{5_000_000, containerdLimit} {
		all[fmt.Sprintf("hooked request of %d bytes", size)] = scenario{incumbent: incumbent, run: func(n *node) error {
			server := n.serve("10-a.json", echoing, "Fail", "PreCreateContainer")
			slow := strings.Replace(registration(server.socket, "Fail", "PreCreateContainer"), "{", `{"timeout": "10s", `, 1) // a busy machine
			n.register("10-a.json", slow)
			n.start()
			pod, err := n.runPod(podConfig())
			n.must(err)
			large := strings.Repeat("x", size-2000) // for the fields
			if _, err := n.create(pod, with(containerConfig(), func(c *cri.ContainerConfig) { c.Envs = envs("LARGE", large) }), podConfig()); err != nil {
				return n.well(err)
			}
			return join(
				want("bytes that the server saw", len(lastTold[*containerRequest](server, "PreCreateContainer").GetContainerEnvs()["LARGE"]), len(large)),
				want("bytes at the runtime", len(lastRequest[*cri.CreateContainerRequest](n.runtime).GetConfig().GetEnvs()[0].GetValue()), len(large)),
			)
		}}
		all[fmt.Sprintf("request of %d bytes", size)] = scenario{incumbent: incumbent, run: func(n *node) error {
			n.start()
			argument := size - 20 // for the fields
			ctx, cancel := n.timed()
			defer cancel()
			resp, err := n.kubelet.ExecSync(ctx, &cri.ExecSyncRequest{ContainerId: "c", Cmd: []string{strings.Repeat("x", argument)}})
			return join(n.well(err), want("bytes that arrived", string(resp.GetStdout()), fmt.Sprint(argument)))
		}}
		all[fmt.Sprintf("answer of %d bytes", size)] = scenario{incumbent: incumbent, run: func(n *node) error {
			n.start()
			n.runtime.mu.Lock() // wasmproxy may be listing them
			n.runtime.list = listOf(size)
			n.runtime.mu.Unlock()
			ctx, cancel := n.timed()
			defer cancel()
			list, err := n.kubelet.ListContainers(ctx, &cri.ListContainersRequest{})
			return join(n.well(err), want("containers", len(list.GetContainers()), len(n.runtime.list.Containers)))
		}}
	}
	tests(t, all)
}

// listOf is a list that is as large as it may be.
func listOf(size int) *cri.ListContainersResponse {
	list, one := &cri.ListContainersResponse{}, &cri.Container{Id: strings.Repeat("c", 64), Labels: map[string]string{"l": strings.Repeat("x", 9000)}}
	for each := proto.Size(&cri.ListContainersResponse{Containers: []*cri.Container{one}}); size >= each; size -= each {
		list.Containers = append(list.Containers, one)
	}
	return list
}
