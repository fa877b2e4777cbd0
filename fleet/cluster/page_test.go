package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/internal/testcluster"
	"github.com/wasmproxy/wasmproxy/fleet/trust/trusttest"
)

// TestPage is the stranger who does what docs/fleet.md says: it runs each command of the page, in the page's order, with the files that
// the page shows. There are two clusters: one is installed by kustomize, and the other one, which has nodes, by Helm.
//
// It replaces what a page cannot know, which are digests, and the time of a probation. A block or a command that it does not know is an
// error.
func TestPage(t *testing.T) {
	text, err := os.ReadFile("../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newPage(t, string(text))
	steps := p.steps()
	for _, block := range blocks.FindAllStringSubmatch(p.text, -1) {
		switch kind, content := block[1], block[2]; kind {
		case "sh node":
			for line := range strings.Lines(content) {
				line = p.known(strings.TrimSpace(line))
				out := p.run(line)
				if len(steps) > 0 && strings.HasPrefix(line, steps[0].command) {
					steps[0].then(line, out)
					steps = steps[1:]
				}
			}
		case "yaml manifest":
			p.write("50-qos.yaml", strings.Replace(p.known(content), "bakeSeconds: 600", "bakeSeconds: 2", 1))
		case "yaml kustomization", "yaml values", "yaml trust", "yaml mirrors":
			p.write(strings.TrimPrefix(kind, "yaml ")+".yaml", content)
		case "yaml prometheus": // a part of a file of the reader's own Prometheus, which the tests of the proxy's commands read
		default:
			t.Errorf("docs/fleet.md has a block of %q, which this test does not know", kind)
		}
	}
	if len(steps) > 0 {
		t.Errorf("docs/fleet.md has no command %q, or has it too early", steps[0].command)
	}
}

var (
	blocks  = regexp.MustCompile("(?ms)^```(.*?)\n(.*?)^```$")
	digests = regexp.MustCompile(`@sha256:[0-9a-f]{64}`)
	inText  = regexp.MustCompile("`((?:cosign|helm|kubectl|make|wasmproxy|wasmproxy-fleet) [^`]*)`")
)

// notRun are commands in the page's sentences that this test does not run as they are, and why.
var notRun = map[string]string{
	"cosign trusted-root create":                      "it needs the addresses of a Sigstore of the reader's own; trusttest writes the file",
	"make dist":                                       "testdata/tools/dist runs it",
	"wasmproxy plugin shadow":                         "it asks for a plugin; the tests of that command run it",
	"helm install --take-ownership --force-conflicts": "it is run with the arguments of the other helm install",
}

// commandsInText are the commands in sentences that are to be run: those in blocks that begin so are run already.
func commandsInText(t *testing.T, text string) (all []string) {
	t.Helper()
	prose := blocks.ReplaceAllString(text, "")
	found := map[string]bool{}
	for _, m := range inText.FindAllStringSubmatch(prose, -1) {
		found[m[1]] = true
		if notRun[m[1]] == "" && !strings.Contains(text, "\n"+m[1]) {
			all = append(all, m[1])
		}
	}
	for command := range notRun {
		if !found[command] {
			t.Errorf("docs/fleet.md does not have %q", command)
		}
	}
	return all
}

// page is docs/fleet.md, and what its commands need.
type page struct {
	t             *testing.T
	text          string
	inText        []string // commands in sentences
	dir, bin      string
	env           []string
	kustomized, s *testcluster.Server
	nodes         []*node
	digests       map[string]string // by those of the page; "": not pushed yet
	order         []string          // of the page's digests
	first         string            // digest of the plugin's first module
	install       string            // the command of Helm
}

func newPage(t *testing.T, text string) *page {
	t.Helper()
	p := &page{t: t, text: text, inText: commandsInText(t, text), dir: t.TempDir(), bin: t.TempDir(), digests: map[string]string{}}
	for _, digest := range digests.FindAllString(text, -1) {
		if _, has := p.digests[digest]; !has {
			p.digests[digest] = ""
			p.order = append(p.order, digest)
		}
	}
	testcluster.Run(t, "go", "-C", "../../testdata/e2e", "run", "./internal/programs", p.bin, "kubectl", "cosign")
	testcluster.Run(t, "go", "build", "-C", "../../testdata/tools", "-buildvcs=false", "-ldflags", "-s -w", "-o", filepath.Join(p.bin, "helm"), "helm.sh/helm/v4/cmd/helm")
	testcluster.Run(t, "go", "build", "-C", "..", "-buildvcs=false", "-o", p.bin+"/", "./cmd/...")
	testcluster.Run(t, "go", "build", "-C", "../..", "-buildvcs=false", "-o", filepath.Join(p.bin, "wasmproxy"), "./cmd/wasmproxy")
	home := t.TempDir()
	p.env = append(startInternet(t, "registry.example", "registry.inside"), "PATH="+p.bin+":/usr/bin:/bin", "HOME="+home,
		"HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home, "COSIGN_PASSWORD=")
	p.kustomized, p.s = testcluster.Start(t), testcluster.Start(t)

	if err := os.CopyFS(filepath.Join(p.dir, "wasmproxy-kustomize"), os.DirFS("../../deploy/kustomize")); err != nil {
		t.Fatal(err)
	}
	chart, err := filepath.Abs("../../deploy/helm")
	if err != nil {
		t.Fatal(err)
	}
	p.run("helm package " + chart + " && mv wasmproxy-fleet-*.tgz wasmproxy-helm.tgz") // as make dist does it
	p.write("trusted_root.json", string(trusttest.NewSigstore(t).Root(t, true)))
	p.first = p.module("noop")
	return p
}

func (p *page) write(name, content string) {
	p.t.Helper()
	write(p.t, filepath.Join(p.dir, name), []byte(content))
}

// module makes qos.wasm another one, and returns its digest.
func (p *page) module(name string) (digest string) {
	p.t.Helper()
	content, err := os.ReadFile("../../testdata/wat/" + name + ".wasm")
	if err != nil {
		p.t.Fatal(err)
	}
	p.write("qos.wasm", string(content))
	return strings.Fields(p.run("sha256sum qos.wasm"))[0]
}

// known has the digests of what was pushed in the place of the page's.
func (p *page) known(text string) string {
	return digests.ReplaceAllStringFunc(text, func(digest string) string { return p.digests[digest] })
}

// run runs a line of the page, as an administrator of the cluster that it is for, and returns what it prints.
func (p *page) run(line string) string {
	p.t.Helper()
	s := p.s
	if strings.Contains(line, " -k ") || strings.Contains(line, "--take-ownership") {
		s = p.kustomized
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir, cmd.Env = p.dir, append(p.env, "KUBECONFIG="+p.kubeconfig(s, adminToken))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s%s", line, err, out, errs.String())
	}
	p.t.Logf("%s\n%s%s", line, out, errs.String())
	return string(out)
}

func (p *page) kubeconfig(s *testcluster.Server, token string) (file string) {
	p.t.Helper()
	file = filepath.Join(p.t.TempDir(), "kubeconfig")
	s.Kubeconfig(file, token)
	return file
}

// step is what is true after a command of the page, which begins so.
type step struct {
	command string
	then    func(line, out string)
}

func (p *page) steps() []step {
	both := func(digest string) func() error { return func() error { return p.have(digest, true) } }
	return []step{
		{"kubectl apply -k ", func(string, string) { p.image(p.kustomized) }},
		{"helm install ", func(line, _ string) {
			p.image(p.s)
			p.run(line + " --take-ownership --force-conflicts")
			p.install = line
			p.begin()
		}},
		{"kubectl label node worker-1 ", func(line, _ string) {
			p.run(strings.ReplaceAll(line, "worker-1", "worker-9"))
			p.agents()
		}},
		{"kubectl get pluginnodes", func(_, out string) { p.says(out, "worker-1") }},
		{"wasmproxy-fleet push ", p.pushed},
		{"kubectl get nodeplugins", func(_, out string) { p.says(out, "50-qos") }},
		{"kubectl wait ", func(string, string) {
			p.eventually("the nodes have the plugin", both(p.first))
			p.module("quota")
		}},
		{"wasmproxy-fleet push ", p.pushed},
		{"kubectl patch ", func(string, string) {}},
		{"kubectl patch ", func(string, string) {
			p.eventually("the rollout is paused", func() error { return p.reason("Paused") })
			time.Sleep(2 * time.Second) // several rounds of the controller
			if err := p.have(p.first, true); err != nil {
				p.t.Errorf("a paused rollout has gone on: %v", err)
			}
		}},
		{"kubectl patch ", func(string, string) {
			p.eventually("a node has the new version", func() error {
				if p.have(p.first, true) == nil {
					return fmt.Errorf("both have the former one")
				}
				return nil
			})
		}},
		{"kubectl patch ", func(string, string) {
			p.eventually("the nodes have the former version again", both(p.first))
			p.eventually("there is no update", func() error { return p.reason("Complete") })
		}},
		{"kubectl get nodeplugin ", func(_, out string) { p.says(out, "observedGeneration:") }},
		{"kubectl get pluginnode ", func(_, out string) {
			p.says(out, "phase: Healthy")
			for _, command := range p.inText {
				if !strings.Contains(command, " delete ") {
					p.run(strings.NewReplacer("NAME", "50-qos", "NODE", "worker-9").Replace(command))
				}
			}
		}},
		{"kubectl patch ", func(string, string) {
			p.eventually("the plugin is disabled", func() error { return p.have(p.first, false) })
		}},
		{"kubectl patch ", func(string, string) { p.eventually("the plugin is enabled", both(p.first)) }},
		{"kubectl delete nodeplugin ", func(string, string) { p.eventually("no node has the plugin", both("")) }},
		{"wasmproxy-fleet verify ", func(_, out string) { p.says(out, "plugins.pub") }},
		{"kubectl create configmap ", func(string, string) {
			p.says(p.run("kubectl get configmap -n wasmproxy wasmproxy-mirrors -o yaml"), "https://cache.example/proxy")
		}},
		{"wasmproxy-fleet copy registry.example", func(string, string) {}},
		{"wasmproxy-fleet copy oci:", func(_, out string) { p.says(out, "registry.inside/plugins/qos"+p.digests[p.order[0]]) }},
		{"kubectl apply -k ", func(string, string) {
			var policy struct {
				Spec struct {
					Variables []struct{ Name, Expression string }
				}
			}
			p.kustomized.Must(http.MethodGet, policies+"/wasmproxy-root-plugins", "", &policy)
			if v := policy.Spec.Variables[0]; v.Name != "group" || v.Expression != "'node-team'" {
				p.t.Errorf("the first variable of the policy is %+v", v)
			}
		}},
		{"kubectl delete nodeplugins --all", func(string, string) {}},
		{"helm uninstall ", func(string, string) {
			p.uninstalled()
			p.run(p.install) // which finds what the release before has left
			p.image(p.s)
			for _, command := range p.inText {
				if strings.Contains(command, " delete ") {
					p.run(command + " --wait=false") // there is nobody who ends the deletion of a namespace
				}
			}
		}},
	}
}

func (p *page) says(out, want string) {
	p.t.Helper()
	if !strings.Contains(out, want) {
		p.t.Errorf("the command prints %q, without %q", out, want)
	}
}

func (p *page) eventually(what string, try func() error) {
	p.t.Helper()
	testcluster.Eventually(p.t, what, try)
}

// pushed knows the page's next digest from what the command prints.
func (p *page) pushed(_, out string) {
	p.t.Helper()
	_, digest, found := strings.Cut(strings.TrimSpace(out), "@")
	for _, of := range p.order {
		if p.digests[of] == "" && found {
			p.digests[of] = "@" + digest
			return
		}
	}
	p.t.Errorf("the command prints %q, of which the page has no digest", out)
}

// have holds that both nodes have a module, "" being none.
func (p *page) have(digest string, enabled bool) error {
	for _, n := range p.nodes {
		if has, is := n.has(p.t, "50-qos"); has != digest || (is != enabled && digest != "") {
			return fmt.Errorf("%s has %q, enabled: %v", n.name, has, is)
		}
	}
	return nil
}

// reason holds that the plugin's condition Ready has a reason, for what spec says now.
func (p *page) reason(want string) error {
	o := new(v1alpha1.NodePlugin)
	p.s.Must(http.MethodGet, group+"/nodeplugins/50-qos", "", o)
	c := meta.FindStatusCondition(o.Status.Conditions, v1alpha1.Ready)
	if c == nil || c.Reason != want || o.Status.ObservedGeneration != o.Generation {
		return fmt.Errorf("the status is %+v", o.Status)
	}
	return nil
}
