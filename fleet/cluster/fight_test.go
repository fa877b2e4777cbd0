package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
)

// fight has somebody, such as a tool for configurations, put the first node's edited file back whenever it is another one, while a module
// comes to the nodes. The agent writes that once, and then leaves the file alone until somebody removes it. The other nodes have the module.
func (f *fleet) fight(id, module string) {
	f.t.Helper()
	file := filepath.Join(f.nodes[0].plugins(), id+".json")
	edited := read(f.t, file)
	var times atomic.Int32
	stop := testcluster.During(f.t, func(ctx context.Context) {
		for ; ctx.Err() == nil; time.Sleep(200 * time.Millisecond) {
			if read(f.t, file) != edited {
				times.Add(1)
				write(f.t, file, []byte(edited))
			}
		}
	})
	f.set(id, module, 1)
	testcluster.Eventually(f.t, "the other nodes have the module, and the first one says that its file was edited", func() error {
		p := f.get(id)
		if p.Status.ObservedGeneration != p.Generation || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.Ready) {
			return fmt.Errorf("the status is %+v", p.Status)
		}
		if p.Status.Nodes.Healthy != 2 || p.Status.Nodes.Apart != 1 || times.Load() == 0 {
			return fmt.Errorf("the file was put back %d times, and the status is %+v", times.Load(), p.Status)
		}
		return nil
	})
	if n := f.have(id, module); n != 2 {
		f.t.Errorf("%d nodes have %s, and two should", n, module)
	}
	before, version := times.Load(), f.version(f.nodes[0])
	time.Sleep(2 * time.Second) // ten rounds of the agent
	stop()
	// The agent may write once more: an edit in the milliseconds in which it notes what it has written is taken for that.
	if before > 2 || times.Load() != before || f.version(f.nodes[0]) != version {
		f.t.Errorf("the file was put back %d times, and then %d times; the node's report was %s, and is %s",
			before, times.Load()-before, version, f.version(f.nodes[0]))
	}
	if err := os.Remove(file); err != nil {
		f.t.Fatal(err)
	}
	f.complete(id, module)
}

// version is that of a node's report.
func (f *fleet) version(n *node) string {
	f.t.Helper()
	var has struct {
		Metadata struct{ ResourceVersion string }
	}
	f.s.Must(http.MethodGet, group+"/pluginnodes/"+n.name, "", &has)
	return has.Metadata.ResourceVersion
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}
