package dockermode_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestUnseenCreation: what plugins would not see of a creation is the Engine's business alone, unless a plugin
// is asked about creations and not bypassed.
func TestUnseenCreation(t *testing.T) {
	engine := startDocker(t)
	const (
		create    = "/v1.41/containers/create"
		outside   = `{"Image":"busybox","CapAdd":["NET_ADMIN"],"Memory":67108864}`
		undecoded = `{"Image":"busybox","Env":{"A":"1"}}`
	)
	direct, proxied := api(engine.Endpoint), api(engine.ProxyEndpoint)
	expect := func(when, body string, want int) {
		t.Helper()
		if code, answer := proxied.post(t, create, body); code != want {
			t.Errorf("%s %s answers %d %s, want %d", when, body, code, answer, want)
		}
	}
	refused, answer := direct.post(t, create, undecoded)
	if refused < 400 {
		t.Fatalf("the Engine takes %s", undecoded)
	}
	proxy := node.StartProxyWith(t, []string{"--docker-containers", "all"})
	expect("without a plugin", outside, 201)
	if _, got := proxied.post(t, create, undecoded); got != answer {
		t.Errorf("without a plugin the error is %s, want the Engine's %s", got, answer)
	}
	proxy.Add(t, node.Noop)
	expect("with a plugin", outside, 400)
	expect("with a plugin", undecoded, 400)
	if _, got := proxied.post(t, create, undecoded); got == answer {
		t.Errorf("with a plugin the error is the Engine's: %s", got)
	}
	proxy.Bypass(t)
	expect("in a bypass", outside, 201)
	expect("in a bypass", undecoded, refused)
	proxy.Stop(t)
}
