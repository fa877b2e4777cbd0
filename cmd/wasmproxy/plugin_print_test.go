package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// TestSecretsAreHidden has an environment and credentials in a result. They are seen
// only by who asks for them.
func TestSecretsAreHidden(t *testing.T) {
	env := func(v string) *runtimeapi.CreateContainerRequest {
		return &runtimeapi.CreateContainerRequest{Config: &runtimeapi.ContainerConfig{Envs: []*runtimeapi.KeyValue{{Key: "PASSWORD", Value: []byte(v)}}}}
	}
	auth := func(v string) *runtimeapi.PullImageRequest {
		return &runtimeapi.PullImageRequest{Auth: &runtimeapi.AuthConfig{Password: v}}
	}
	for _, res := range []simulate.Result{
		{Request: env("secret-1"), Sent: env("secret-2")}, {Request: auth("secret-1"), Sent: auth("secret-2")},
	} {
		for _, write := range []func(io.Writer, simulate.Result) error{printResult, encodeResult} {
			for _, show := range []bool{false, true} {
				var out bytes.Buffer
				shown := res
				if !show {
					shown = res.Redact()
				}
				if err := write(&out, shown); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(out.String(), "secret") != show || strings.Contains(out.String(), "(hidden)") == show {
					t.Errorf("show is %v:\n%s", show, out.String())
				}
			}
		}
	}
}

// TestKeptValuesAreShown: text and JSON show the key-value state that a call has changed, and nothing of the rest.
func TestKeptValuesAreShown(t *testing.T) {
	res := simulate.Result{
		KVBefore: map[string]string{"same": "s", "other": "1", "gone": "g"},
		KV:       map[string]string{"same": "s", "other": "2", "new": ""},
	}
	for want, write := range map[string]func(io.Writer, simulate.Result) error{
		"\nkey-value state\n  \"gone\" is deleted\n  \"new\": \"\"\n  \"other\": \"2\"\n": printResult,
		`"kv":{"gone":null,"new":"","other":"2"}`:                                         encodeResult,
	} {
		var out, compact bytes.Buffer
		if err := write(&out, res); err != nil {
			t.Fatal(err)
		}
		if json.Compact(&compact, out.Bytes()) != nil {
			compact = out
		}
		if !strings.Contains(compact.String(), want) {
			t.Errorf("%s has no %s", out.String(), want)
		}
	}
}
