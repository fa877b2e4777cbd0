package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// TestShadowCommand has the calls of a shadow for people, and all of the report as JSON. A plugin without a shadow is an error.
func TestShadowCommand(t *testing.T) {
	dir, err := os.MkdirTemp("", "wp")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "a")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	report := shadowReport()
	serve, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- admin.Serve(serve, l, admin.Sources{Observer: observe.Discard(), Shadow: func(_ context.Context, id string) (plugin.ShadowReport, error) {
			if id != report.Plugin {
				return plugin.ShadowReport{}, admin.NotReady(fmt.Sprintf("plugin %s has no shadow", id))
			}
			return report, nil
		}})
	}()
	ask := func(args ...string) (code int, out, errs string) {
		var stdout, stderr bytes.Buffer
		code = run(t.Context(), newRoot(""), append([]string{"plugin", "shadow", "--admin-socket", socket}, args...), &stdout, &stderr)
		return code, stdout.String(), stderr.String()
	}
	if code, out, errs := ask("50-qos"); code != exitOK || out != shadowText || errs != "" {
		t.Errorf("exit code %d, stderr %q, stdout\n%s\nwant\n%s", code, errs, out, shadowText)
	}
	code, out, _ := ask("50-qos", "-o", "json")
	var got plugin.ShadowReport
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK || !reflect.DeepEqual(got, report) {
		t.Errorf("exit code %d (%v), stdout\n%s", code, err, out)
	}
	const none = "wasmproxy: asking for the shadow of plugin 60-other: plugin 60-other has no shadow\n"
	if code, out, errs := ask("60-other"); code != exitFailure || out != "" || errs != none {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, out, errs)
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// shadowReport has a call of each outcome that is shown, with values of all kinds.
func shadowReport() plugin.ShadowReport {
	text := func(s string) *string { return &s }
	at := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	return plugin.ShadowReport{
		Plugin: "50-qos",
		Outcomes: map[observe.ShadowOutcome]uint64{
			observe.ShadowSame: 980, observe.ShadowDifferent: 17, observe.ShadowFailed: 2, observe.ShadowRefused: 1,
		},
		Calls: []plugin.ShadowCall{
			{Time: at, Hook: "PreCreateContainer", Object: "prod/web/app", Outcome: observe.ShadowDifferent, Rows: []plugin.Changed{
				{Target: "container cgroup file cpu.max.burst", Was: text("20000"), Is: text("10000")},
				{Target: "container.annotations[\"a\"]", Was: text(""), Is: nil},
			}, More: 3},
			{Time: at.Add(time.Second), Hook: "PreCreateContainer", Object: "prod/db/app", Outcome: observe.ShadowFailed,
				Error: "wasm error: unreachable", Rows: []plugin.Changed{{Target: "outcome", Was: nil, Is: text("failed")}}},
			{Time: at.Add(2 * time.Second), Hook: "PreRunPodSandbox", Object: "prod/\x1bdb", Outcome: observe.ShadowRefused,
				Rows: []plugin.Changed{{Target: "outcome", Was: nil, Is: text("refused with code 9: no")}}},
		},
	}
}

const shadowText = `2026-11-01T10:00:00Z PreCreateContainer of prod/web/app: different
  TARGET                               WAS    IS
  container cgroup file cpu.max.burst  20000  10000
  container.annotations["a"]           ""     -
  and 3 more

2026-11-01T10:00:01Z PreCreateContainer of prod/db/app: failed
  wasm error: unreachable
  TARGET   WAS  IS
  outcome  -    failed

2026-11-01T10:00:02Z PreRunPodSandbox of prod/\x1bdb: refused
  TARGET   WAS  IS
  outcome  -    refused with code 9: no

calls of the shadow: 980 same, 17 different, 2 failed, 1 refused
`
