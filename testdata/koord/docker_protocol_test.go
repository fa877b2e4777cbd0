package koord_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// TestDockerFields takes a pod through its life on both proxies in Docker mode, and compares the
// requests that a hook server gets.
func TestDockerFields(t *testing.T) {
	t.Parallel()
	told := map[proxy]map[string][]proto.Message{}
	for _, p := range []proxy{wasmproxy, koordRuntimeProxy} {
		n := newNode(t, p)
		d := n.onDocker()
		server := n.serve("10-a.json", echoing, "Fail", allHooks...)
		n.start()
		sandbox, container := d.running()
		d.must(d.update(container, `{"CpuShares":256,"CpuQuota":20000}`))
		d.must(d.do(container, "stop?t=1"))
		d.must(d.do(sandbox, "stop?t=1"))
		for _, hook := range allHooks { // those of the container may come after the sandbox's
			n.eventually(hook, func() error { return want("called", len(server.toldOf(hook)) > 0, true) })
		}
		told[p] = map[string][]proto.Message{}
		for _, hook := range allHooks {
			for _, each := range server.toldOf(hook) {
				told[p][hook] = append(told[p][hook], each.req)
			}
			if len(told[p][hook]) != 1 {
				t.Errorf("%s tells of %s %d times, want once", p, hook, len(told[p][hook]))
			}
		}
	}
	if d := cmp.Diff(told[koordRuntimeProxy], told[wasmproxy], protocmp.Transform()); d != "" {
		t.Errorf("hook servers are told of something else (-%s +%s):\n%s", koordRuntimeProxy, wasmproxy, d)
	}
}

// TestDockerAnswers holds what reaches Docker of a hook server's answers: the fields that it names, and
// nothing else is another byte.
func TestDockerAnswers(t *testing.T) {
	tests(t, map[string]scenario{
		"a field of a container": {incumbent: `the body at Docker differs`, run: func(n *node) error {
			d := n.onDocker()
			n.serve("10-a.json", answering(&containerResponse{ContainerResources: &hookResourcesMessage{CpuQuota: 12345}}), "Fail", "PreCreateContainer")
			n.start()
			sandbox, _ := d.running()
			return sameBody(d.engine.body("/containers/create"), containerBody(sandbox), `"CpuQuota":50000`, `"CpuQuota":12345`)
		}},
		"nothing": {incumbent: `the body at Docker differs`, run: func(n *node) error {
			d := n.onDocker()
			n.serve("10-a.json", nil, "Fail", allHooks...)
			n.start()
			sandbox, container := d.running()
			update := `{"CpuShares":256, "Future":{"big":12345678901234567890}}`
			d.must(d.update(container, update))
			bodies := d.engine.bodies("/containers/create")
			return errors.Join(
				sameBody(bodies[0], sandboxBody), sameBody(bodies[1], containerBody(sandbox)),
				sameBody(d.engine.body("update"), update),
			)
		}},
		"a field of an update": {incumbent: `the body at Docker differs`, run: func(n *node) error {
			d := n.onDocker()
			n.serve("10-a.json", answering(&containerResponse{ContainerResources: &hookResourcesMessage{CpuQuota: 12345}}), "Fail", "PreUpdateContainerResources")
			n.start()
			_, container := d.running()
			d.must(d.update(container, `{"CpuShares":256,"CpuQuota":20000}`))
			return sameBody(d.engine.body("update"), `{"CpuShares":256,"CpuQuota":12345}`)
		}},
	})
}

// sameBody compares a body that arrived with one that was sent, in which each old text has become the new one.
func sameBody(got, sent string, oldAndNew ...string) error {
	for i := 0; i < len(oldAndNew); i += 2 {
		sent = strings.Replace(sent, oldAndNew[i], oldAndNew[i+1], 1)
	}
	if got == sent {
		return nil
	}
	return fmt.Errorf("the body at Docker differs:\n got %s\nwant %s", got, sent)
}
