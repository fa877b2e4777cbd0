package intercept_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// A call that a plugin refuses, or that fails with a plugin under Fail, is one line of the log
// at info, with what kubelet is answered. What an ignored plugin fails with refuses nothing.
func TestRefusedCallIsOneLogLine(t *testing.T) {
	rejects := func(_ context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
		token, _ := ev.Lookup(abi.Container, abi.ContainerEnv, "TOKEN")
		return adj.Reject(abi.RejectPermissionDenied, "ask #platform, not "+token)
	}
	fails := func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		token, _ := ev.Lookup(abi.Container, abi.ContainerEnv, "TOKEN")
		return errors.New("no tier for " + token)
	}
	with := func(policy plugin.FailurePolicy, f function) []plugin.Member {
		m := on(abi.PreCreateContainer, f)
		m.Policy = policy
		return []plugin.Member{m}
	}
	for _, tt := range []struct {
		name    string
		members []plugin.Member
		code    codes.Code
		reason  string
	}{
		{"rejected", with(plugin.Ignore, rejects), codes.PermissionDenied, "rejected: ask #platform, not (hidden)"},
		{"failed under Fail", with(plugin.Fail, fails), codes.Unavailable, "no tier for (hidden)"},
		{"failed under Ignore", with(plugin.Ignore, fails), codes.OK, ""},
		{"let through", with(plugin.Fail, nothing), codes.OK, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := newNode(t, tt.members)
			_, err := n.call(t.Context(), "CreateContainer", secretCreate(), &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
			if status.Code(err) != tt.code {
				t.Errorf("answered %v, want %v", err, tt.code)
			}
			lines := refusals(t, n)
			if tt.code == codes.OK {
				if len(lines) != 0 {
					t.Errorf("logged %v", lines)
				}
				return
			}
			if len(lines) != 1 {
				t.Fatalf("logged %v, want one line", lines)
			}
			for key, want := range map[string]string{
				"level": "WARN", "plugin": "10-test", "hook": "PreCreateContainer", "namespace": "prod", "pod": "web", "container": "app", "code": tt.code.String(), "reason": tt.reason,
			} {
				if got := lines[0][key]; got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
		})
	}
}

// A call of an object that nobody knows, and one that cannot be decoded, are refused for a plugin
// that was not even asked, and there is no pod to name.
func TestRefusedCallWithoutAnEventIsLogged(t *testing.T) {
	m := on(abi.PreStartContainer, nothing)
	m.Policy = plugin.Fail
	n := newNode(t, []plugin.Member{m})
	n.backend.down = true
	_, err := n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c9"}, &runtimeapi.StartContainerResponse{})
	lines := refusals(t, n)
	if status.Code(err) != codes.Unavailable || len(lines) != 1 || lines[0]["plugin"] != "10-test" || lines[0]["code"] != "Unavailable" {
		t.Errorf("answered %v, logged %v", err, lines)
	}
}

// refusals are the log's lines about refused calls.
func refusals(t *testing.T, n *node) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(n.log.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["msg"] == "call refused" {
			lines = append(lines, fields)
		}
	}
	return lines
}
