package scale

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	fleetagent "github.com/wasmproxy/wasmproxy/fleet/agent"
	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
	"github.com/wasmproxy/wasmproxy/fleet/kube"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
)

// agent is a node's agent without a proxy and a plugin directory: it watches, chooses and reports as a real one does. It differs from
// that in what becomes of a revision, which is its fate.
type agent struct {
	name    string
	fate    fate
	client  *kube.Client
	plugins *kube.Store[*v1alpha1.NodePlugin]
	bytes   *atomic.Int64 // that the API server has sent to it
	upgrade chan string   // gets the version of another proxy
	log     func(format string, args ...any)

	revision string    // that the node has
	proved   time.Time // when its probation ends
	pace     *fleetagent.Pace
	next     string    // that it fetches, or has fetched
	fetched  time.Time // when it has fetched that
	version  string    // of its proxy
	node     *metav1.PartialObjectMetadata
	last     *v1alpha1.PluginNode // as the API server has it

	mu       sync.Mutex
	said     said
	switched []string // revisions, in the order in which the node got them
	writes   int      // of its PluginNode
}

// fate is what becomes of a node.
type fate int

const (
	healthy fate = iota
	sick         // fails with the bad revision
	silent       // is ready, and says nothing after its first report
	away         // becomes NotReady after its first report
)

// said is what a report says.
type said struct {
	version, revision, next string
	phase                   v1alpha1.Phase
}

// counted is a connection that counts what it receives.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// newAgent makes an agent with a connection of its own. It reaches the API server as the agents' service account in a pod on the node.
func newAgent(t *testing.T, s *testcluster.Server, name, revision string, fate fate) *agent {
	a := &agent{
		name: name, fate: fate, revision: revision, version: "v1.0.0", bytes: new(atomic.Int64), upgrade: make(chan string, 1), log: t.Logf,
		pace:    fleetagent.NewPace(*reportEvery),
		plugins: kube.NewStore(func(o runtime.Object) *v1alpha1.NodePlugin { return o.(*v1alpha1.NodePlugin) }),
	}
	config := s.Config(testcluster.AdminToken)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:wasmproxy:wasmproxy-agent",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:wasmproxy", "system:authenticated"},
		Extra:    map[string][]string{"authentication.kubernetes.io/node-name": {name}},
	}
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) { // a client of its own, hence no shared connection
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		return counted{conn, a.bytes}, err
	}
	var err error
	if a.client, err = kube.New(config); err != nil {
		t.Fatal(err)
	}
	return a
}

// watch follows the NodePlugins until ctx is done.
func (a *agent) watch(ctx context.Context) {
	a.plugins.Run(ctx, a.client.Fleet, "", "nodeplugins", &v1alpha1.NodePlugin{})
}

// run follows what the NodePlugin says until ctx is done.
func (a *agent) run(ctx context.Context) {
	for {
		due, err := a.turn(ctx)
		var again <-chan time.Time
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			a.log("%s: reporting: %v", a.name, err)
			a.last = nil
			again = time.After(time.Second)
		case !due.IsZero():
			again = time.After(time.Until(due))
		}
		select {
		case <-ctx.Done():
			return
		case a.version = <-a.upgrade:
		case <-a.plugins.Changed():
		case <-again:
		}
	}
}

// turn makes one round, and says when the next one is due, if that is known.
func (a *agent) turn(ctx context.Context) (due time.Time, err error) {
	all, _ := a.plugins.All()
	p := all[plugin]
	switch {
	case p == nil, a.fate == silent && a.last != nil:
		return due, nil
	}
	now, choice := time.Now(), plan.Choose(&p.Status, a.name)
	if choice.Next != a.next {
		a.next, a.fetched = choice.Next, now.Add(rand.N(*jitter))
	}
	if choice.Revision != "" && choice.Revision != a.revision {
		a.revision, a.proved = choice.Revision, now.Add(choice.Probation)
		a.mu.Lock()
		a.switched = append(a.switched, a.revision)
		a.mu.Unlock()
	}
	is := said{version: a.version, revision: a.revision, phase: v1alpha1.Healthy}
	switch {
	case a.fate == sick && a.revision == revisionName(bad):
		is.phase = v1alpha1.Failing
	case now.Before(a.proved):
		is.phase, due = v1alpha1.Probation, a.proved
	}
	switch {
	case a.next == "":
	case now.Before(a.fetched):
		if due.IsZero() || a.fetched.Before(due) {
			due = a.fetched
		}
	default:
		is.next = a.next
	}
	if a.last != nil && is == a.says() {
		a.pace.Drop()
		return due, nil
	}
	if pace := a.pace.Due(now); now.Before(pace) {
		if due.IsZero() || pace.Before(due) {
			due = pace
		}
		return due, nil
	}
	a.pace.Reported(now)
	return due, a.report(ctx, is)
}

// report writes the node's PluginNode.
func (a *agent) report(ctx context.Context, is said) (err error) {
	if a.node == nil {
		if a.node, err = a.client.NodeMetadata(ctx, a.name); err != nil {
			a.node = nil
			return err
		}
	}
	if a.last == nil {
		last, err := a.client.PluginNode(ctx, a.name)
		if apierrors.IsNotFound(err) {
			last, err = &v1alpha1.PluginNode{ObjectMeta: metav1.ObjectMeta{Name: a.name}}, nil
		}
		if err != nil {
			return err
		}
		a.last = last
	}
	n := a.last.DeepCopy()
	n.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: a.name, UID: a.node.UID}}
	n.ProxyVersion = is.version
	one := v1alpha1.PluginReport{Name: plugin, Revision: is.revision, Phase: is.phase, Since: metav1.Now()}
	if is.next != "" {
		one.Next = &v1alpha1.Next{Revision: is.next, State: v1alpha1.NextFetched}
	}
	n.Plugins = []v1alpha1.PluginReport{one}
	saved, err := a.client.SavePluginNode(ctx, n)
	if err != nil {
		return err
	}
	a.last = saved
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = is
	a.writes++
	return nil
}

// says is what the API server has of the node.
func (a *agent) says() said {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.said
}

// history is which revisions the node has got, and how often it has written.
func (a *agent) history() (switched []string, writes int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.switched...), a.writes
}
