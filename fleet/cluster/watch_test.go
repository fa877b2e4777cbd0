package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
	"github.com/wasmproxy/wasmproxy/runtime/admin"
)

// watch looks from outside at what the parts do: at the files and the proxies of the nodes, and in etcd, which outlives the API server,
// at all that was ever written of the plugin.
type watch struct {
	t *testing.T

	mu       sync.Mutex
	names    map[string]string // of revisions, by what a plugin's file says
	settings map[string]string // of revisions, by the SHA-256 of a plugin's file
	objects  []object
	files    map[string][]seen // what the plugin's files were, by node
	proxies  map[string][]seen // what the proxies had active, by node
}

// object is the NodePlugin as it was written; gone if it was removed.
type object struct {
	v1alpha1.NodePlugin
	at time.Time
}

// seen is the revision that a node has, from a time on.
type seen struct {
	revision string
	at       time.Time
}

func (s seen) String() string { return s.revision + " at " + s.at.Format(time.StampMilli) }

func startWatch(t *testing.T, etcd string, nodes []*node) *watch {
	t.Helper()
	w := &watch{t: t, names: map[string]string{}, settings: map[string]string{}, files: map[string][]seen{}, proxies: map[string][]seen{}}
	testcluster.During(t, func(ctx context.Context) { w.readEtcd(ctx, etcd) })
	for _, n := range nodes {
		testcluster.During(t, func(ctx context.Context) {
			for i := 0; ctx.Err() == nil; i++ {
				w.readFiles(n)
				if i%10 == 0 {
					w.askProxy(ctx, n)
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	return w
}

// pluginFile is what a plugin's file says of its revision.
type pluginFile struct {
	SHA256 string          `json:"sha256"`
	Config json.RawMessage `json:"config"`
}

func (f pluginFile) key() string { return f.SHA256 + string(f.Config) }

// name has the watch know a revision by its module and its config.
func (w *watch) name(digest, config, revision string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[pluginFile{digest, json.RawMessage(config)}.key()] = revision
}

// readFiles looks at a node's plugin directory, and returns the revision that it has.
func (w *watch) readFiles(n *node) (revision string) {
	if text, err := os.ReadFile(filepath.Join(n.plugins(), handID+".json")); err != nil || string(text) != handText {
		w.t.Errorf("the file that was made by hand is on %s %q (%v)", n.name, text, err)
	}
	revision = v1alpha1.NoRevision
	text, err := os.ReadFile(filepath.Join(n.plugins(), pluginID+".json"))
	if err == nil {
		revision = w.revisionOf(text)
	} else if !os.IsNotExist(err) {
		w.t.Errorf("reading the plugin's file of %s: %v", n.name, err)
	}
	w.see(w.files, n.name, revision)
	return revision
}

func (w *watch) revisionOf(text []byte) string {
	var file pluginFile
	if err := json.Unmarshal(text, &file); err != nil {
		w.t.Errorf("the plugin's file is %q: %v", text, err)
		return "unknown"
	}
	var config bytes.Buffer
	json.Compact(&config, file.Config)
	file.Config = config.Bytes()
	w.mu.Lock()
	defer w.mu.Unlock()
	if name, there := w.names[file.key()]; there {
		w.settings[fmt.Sprintf("%x", sha256.Sum256(text))] = name
		return name
	}
	w.t.Errorf("the plugin's file is of no revision: %s", text)
	return "unknown"
}

// see keeps what a node has, if it is something else than before.
func (w *watch) see(of map[string][]seen, node, revision string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := of[node]
	if len(all) == 0 || all[len(all)-1].revision != revision {
		of[node] = append(all, seen{revision, time.Now()})
	}
}

// askProxy looks at what the proxy of a node runs.
func (w *watch) askProxy(ctx context.Context, n *node) {
	all, err := admin.Client{Socket: n.status(), StatusOnly: true}.Plugins(ctx)
	if err != nil {
		return // it is killed
	}
	for _, p := range all.Plugins {
		if p.ID != pluginID || p.Active == nil {
			continue
		}
		w.mu.Lock()
		revision, known := w.settings[p.Active.Settings]
		w.mu.Unlock()
		if !known {
			w.t.Errorf("the proxy of %s runs %s, of a file that nobody has seen", n.name, p.Active.Digest)
		}
		w.see(w.proxies, n.name, revision)
	}
}

// readEtcd reads the history of the NodePlugin.
func (w *watch) readEtcd(ctx context.Context, etcd string) {
	key := "/registry/" + v1alpha1.GroupVersion.Group + "/nodeplugins/" + pluginID
	body := fmt.Sprintf(`{"create_request": {"key": %q, "start_revision": 1}}`, base64.StdEncoding.EncodeToString([]byte(key)))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, etcd+"/v3/watch", bytes.NewReader([]byte(body)))
	if err != nil {
		w.t.Error(err)
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		w.t.Errorf("watching etcd: %v", err)
		return
	}
	defer resp.Body.Close()
	for d := json.NewDecoder(resp.Body); ; {
		var message struct {
			Result struct {
				Events []struct {
					Type string
					Kv   struct{ Value []byte }
				}
			}
		}
		if err := d.Decode(&message); err != nil {
			if ctx.Err() == nil {
				w.t.Errorf("watching etcd: %v", err)
			}
			return
		}
		for _, e := range message.Result.Events {
			o := object{at: time.Now()}
			if e.Type != "DELETE" {
				if err := json.Unmarshal(e.Kv.Value, &o.NodePlugin); err != nil {
					w.t.Errorf("reading etcd: %v: %s", err, e.Kv.Value)
				}
			}
			w.mu.Lock()
			w.objects = append(w.objects, o)
			w.mu.Unlock()
		}
	}
}

// have says which nodes do not have a revision, or do not run it.
func (w *watch) have(nodes []*node, revision string) error {
	return errors.Join(w.last(w.files, nodes, revision), w.last(w.proxies, nodes, revision))
}

func (w *watch) haveFiles(nodes []*node, revision string) error {
	return w.last(w.files, nodes, revision)
}

func (w *watch) last(of map[string][]seen, nodes []*node, revision string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range nodes {
		if all := of[n.name]; len(all) == 0 || all[len(all)-1].revision != revision {
			return fmt.Errorf("%s has had %v", n.name, all)
		}
	}
	return nil
}

// decided is the revisions that a node was to have, one after the other.
func (w *watch) decided(node string) (all []seen) {
	all = []seen{{v1alpha1.NoRevision, time.Time{}}}
	for _, o := range w.objects {
		r := plan.Choose(&o.Status, node).Revision
		if r != "" && r != all[len(all)-1].revision {
			all = append(all, seen{r, o.at})
		}
	}
	return all
}

// late is how much later than a node the watch may learn of a write.
const late = time.Second

// check holds that each node had what it was to have and nothing else, in that order, and never before it was its turn; and that the
// controller kept to its steps.
func (w *watch) check(nodes []*node) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range nodes {
		decided := w.decided(n.name)
		if wrong := follows(w.files[n.name], decided, late); wrong != "" {
			w.t.Errorf("the files of %s: %s; they were %v, and were to be %v", n.name, wrong, w.files[n.name], decided)
		}
		// A proxy goes back by itself before anybody else knows.
		if wrong := follows(w.proxies[n.name], decided, time.Hour); wrong != "" {
			w.t.Errorf("the proxy of %s: %s; it had %v, and was to have %v", n.name, wrong, w.proxies[n.name], decided)
		}
	}
	for i, o := range w.objects {
		if wrong := unsteady(o, w.objects[max(0, i-1)], nodes); wrong != "" {
			w.t.Errorf("the NodePlugin at %s: %s: %+v", o.at.Format(time.StampMilli), wrong, o.Status)
		}
	}
}

// most is how many of three nodes may have the update by the names of its steps.
var most = map[string]int{"Fetch": 0, "Canary": 1, "34%": 2, "100%": 3}

// unsteady says what the controller may not have written after what was there before.
func unsteady(now, before object, nodes []*node) string {
	is, was := now.Status, before.Status
	if is.Update == nil {
		return ""
	}
	have := 0
	for _, n := range nodes {
		if plan.Choose(&is, n.name).Revision == is.Update.Revision {
			have++
		}
	}
	switch most, known := most[is.Update.Step]; {
	case !known, have > most:
		return fmt.Sprintf("%d nodes are to have the update", have)
	case is.ObservedGeneration != was.ObservedGeneration:
		return ""
	case was.RolledBack != "":
		return "after a rollback there is an update, and nobody has changed spec"
	case was.Update != nil && was.Update.StepIndex > is.Update.StepIndex:
		return "it is at an earlier step than before"
	case was.Update != nil && was.Update.Halted != is.Update.Halted && was.Update.Halted != "":
		return "it goes on though it was halted"
	}
	return ""
}

// follows says what of a sequence is not in another one.
func follows(has, decided []seen, late time.Duration) string {
	next := 0
	for _, s := range has {
		i := slices.IndexFunc(decided[next:], func(d seen) bool { return d.revision == s.revision })
		if i < 0 {
			return fmt.Sprintf("%s came at %s, and nobody has decided so", s.revision, s.at.Format(time.StampMilli))
		}
		next += i
		if early := decided[next].at.Sub(s.at); early > late {
			return fmt.Sprintf("%s came %v before it was decided", s.revision, early)
		}
	}
	return ""
}

// TestFollows has the watch find what is wrong in what a node has had.
func TestFollows(t *testing.T) {
	at := func(names string) (all []seen) { // each a second after the one before; a hyphen is a second more
		now := time.Unix(1000, 0)
		for _, name := range strings.Split(names, "") {
			now = now.Add(time.Second)
			if name != "-" {
				all = append(all, seen{name, now})
			}
		}
		return all
	}
	for _, test := range []struct{ has, decided, want string }{
		{"0AB", "0AB", ""},
		{"0-B", "0AB", ""},
		{"0ABA", "0ABA", ""},
		{"0ABAB", "0ABA", "B came"},
		{"0BA", "0AB", "A came"},
		{"0AC", "0AB", "C came"},
		{"0A0A", "0A", "0 came"},
		{"0AB", "0A----B", "B came 4s before"},
	} {
		if got := follows(at(test.has), at(test.decided), late); (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%s after %s: %q, not %q", test.has, test.decided, got, test.want)
		}
	}
}
