package koord_test

import (
	"strings"
	"testing"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestW23Secrets creates a container with a password in its environment, and
// looks for it in the log, in which wasmproxy says all that it can.
// koord-runtime-proxy logs every container's environment.
func TestW23Secrets(t *testing.T) {
	const secret, added = "correct horse battery staple", "hunter2"
	scenario{incumbent: "the log has the password", run: func(n *node) error {
		if n.proxy == wasmproxy {
			n.flags = []string{"--log-level=debug"}
		}
		n.serve("10-a.json", answering(&containerResponse{ContainerEnvs: map[string]string{"PASSWORD": secret, "ADDED": added}}), "Fail", allHooks...)
		n.start()
		pod, err := n.runPod(podConfig())
		n.must(err)
		container, err := n.create(pod, with(containerConfig(), func(c *cri.ContainerConfig) { c.Envs = envs("PASSWORD", secret) }), podConfig())
		n.must(err)
		n.must(n.startContainer(container))
		n.must(n.stopContainer(container))
		ctx, cancel := n.timed()
		defer cancel()
		// The runtime's answer to this is an error or nonsense, either of which somebody may log.
		cri.NewImageServiceClient(n.conn).PullImage(ctx, &cri.PullImageRequest{
			Image: &cri.ImageSpec{Image: "web:1"}, Auth: &cri.AuthConfig{Username: "puller", Password: secret},
		})
		if said := n.log(); strings.Contains(said, secret) || strings.Contains(said, added) {
			return wrong("the log has the password")
		}
		return nil
	}}.test(t)
}
