package registry

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// FuzzHookserver holds the parser of hookserver.d against what Koordinator's
// does, which is encoding/json: what it refuses is refused here, what is
// accepted here means the same, and what only is refused here has a reason.
func FuzzHookserver(f *testing.F) {
	for _, seed := range []string{
		`{"remote-endpoint":"/var/run/koordlet//koordlet.sock","failure-policy":"Ignore","runtime-hooks":["PreRunPodSandbox"]}`,
		`{"Remote-Endpoint":"unix:///x","remote-endpoint":"/y","FAILURE-POLICY":"Fail","runtime-hooks":[null,"x"]}`,
		`{"remote-endpoint":"/x","timeout":"5s","order":"1","match":{"namespaces":["a*","!b"],"labels":{"a":"*"}}}`, `{"match":{"qos":["x"]}}`, `{"wasm-module":"a.wasm","config":{}}`,
		`{"failure-policy":"fail"}`, `{"runtime-hooks":{}}`, `{"remote-endpoint":"x"}`, `{}`, `null`, `[]`, ``, `{"a":{"b":[1,2,"\u0000"]}}`, "{\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var theirs struct {
			Endpoint string   `json:"remote-endpoint"`
			Policy   string   `json:"failure-policy"`
			Hooks    []string `json:"runtime-hooks"`

			// Keys that it ignores and this project reads.
			Timeout json.RawMessage `json:"timeout"`
			Match   json.RawMessage `json:"match"`
			Order   json.RawMessage `json:"order"`
			Module  json.RawMessage `json:"wasm-module"`
		}
		refused := json.Unmarshal(b, &theirs)
		ours, err := parseHookserver(b)
		switch {
		case refused != nil && err == nil:
			t.Fatalf("accepted what encoding/json refuses: %v", refused)
		case refused == nil && err != nil:
			more := given(theirs.Timeout) || given(theirs.Match) || given(theirs.Order) || given(theirs.Module)
			if policyIsKnown(theirs.Policy) && endpointIsFine(theirs.Endpoint) && !more {
				t.Fatalf("refused without a reason: %v", err)
			}
		case err == nil:
			endpoint := theirs.Endpoint
			if endpoint != "" {
				endpoint = filepath.Clean(strings.TrimPrefix(endpoint, "unix://"))
			}
			if ours.Endpoint != endpoint || !slices.Equal(ours.hooks, theirs.Hooks) || !policyIsKnown(theirs.Policy) {
				t.Fatalf("%+v means %+v to Koordinator", ours, theirs)
			}
		}
	})
}

func policyIsKnown(p string) bool { return p == "" || p == "Ignore" || p == "Fail" }

func endpointIsFine(e string) bool {
	path := strings.TrimPrefix(e, "unix://")
	return e == "" || strings.HasPrefix(path, "/") && !strings.Contains(path, "\x00") && len(filepath.Clean(path)) <= 107
}

// FuzzPlugin wants the strict parser to accept only objects of known keys, and
// what it accepts to be usable.
func FuzzPlugin(f *testing.F) {
	for _, seed := range []string{
		`{"failure-policy":"Fail","runtime-hooks":["PreCreateContainer"],"timeout":"1s","config":{"a":[1]},"enabled":false}`,
		`{"sha256":"93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476"}`, `{"remote-endpoint":"/x","timeout":"-1s"}`,
		`{"match":{}}`, `{"Config":1}`, `{"config":null}`, `null`, `[]`, `{"enabled":null,"timeout":""}`, `{`, `{"\n":1}`,
		`{"` + strings.Repeat("k", 5000) + `":1}`, `{"failure-policy":"` + strings.Repeat("p", 5000) + `"}`, `{"timeout":[` + strings.Repeat("1,", 5000) + `1]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parsePlugin(b)
		if err != nil {
			if text := err.Error(); text == "" || len(text) > 500 || strings.ContainsAny(text, "\n\x00") {
				t.Fatalf("error %q", err)
			}
			return
		}
		var keys map[string]json.RawMessage
		if json.Unmarshal(b, &keys) != nil {
			t.Fatal("accepted what is no object")
		}
		for k := range keys {
			if !slices.ContainsFunc(pluginKeys, func(known key) bool { return known.name == k }) {
				t.Fatalf("accepted key %q", k)
			}
		}
		if s.Timeout < 0 || s.Config != nil && !json.Valid(s.Config) || s.Endpoint != "" && !filepath.IsAbs(s.Endpoint) {
			t.Fatalf("accepted %+v", s)
		}
		if set, _ := hookSet(s.hooks); set&^abi.HookSetOf(all()...) != 0 {
			t.Fatalf("hooks %v", set)
		}
	})
}

func all() (hooks []abi.Hook) {
	for _, info := range abi.Hooks {
		hooks = append(hooks, info.Hook)
	}
	return hooks
}
