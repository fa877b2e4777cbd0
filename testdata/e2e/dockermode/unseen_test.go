package dockermode_test

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestUnseenCreation: what plugins would not see of a creation is the Engine's business alone, unless a plugin
// is asked about creations and not bypassed. In old versions of the API a start can be a part of the creation.
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
	start := func(when string, want int) {
		t.Helper()
		id := direct.make(t, create, `{"Image":"busybox"}`)
		for _, version := range []string{"/v1.23", "/v1.24"} { // in the second one the Engine refuses a body
			if code, answer := proxied.post(t, version+"/containers/"+id+"/start", `{"Memory":67108864}`); code != want {
				t.Errorf("%s a start of %s with a HostConfig answers %d %s, want %d", when, version, code, answer, want)
			}
			want = 400
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
	start("without a plugin", 204)
	proxy.Add(t, node.Noop)
	start("with a plugin", 400)
	expect("with a plugin", outside, 400)
	expect("with a plugin", undecoded, 400)
	if _, got := proxied.post(t, create, undecoded); got == answer {
		t.Errorf("with a plugin the error is the Engine's: %s", got)
	}
	proxy.Bypass(t)
	expect("in a bypass", outside, 201)
	expect("in a bypass", undecoded, refused)
	start("in a bypass", 204)
	proxy.Stop(t)
}
