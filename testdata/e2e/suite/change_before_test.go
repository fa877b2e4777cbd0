package suite_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/cgroupfs"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// record records both plugins while pods are created, updated and removed.
func (c *changing) record(t *testing.T) {
	dir := t.TempDir()
	var commands []*exec.Cmd
	for _, id := range []string{changedID, besideID} {
		file := filepath.Join(filepath.Dir(c.settings), id+".jsonl")
		c.recordings[id] = file
		commands = append(commands, c.startRecording(t, id, file, filepath.Join(dir, id)))
	}
	for _, pod := range c.pods {
		c.kubelet.Apply(t, pod)
	}
	for _, pod := range c.pods {
		c.kubelet.AwaitReady(t, pod)
	}
	hooks := map[string][]string{
		changedID: {"PreCreateContainer", "PreUpdateContainerResources"},
		besideID:  {"PreCreateContainer", "PostStartContainer", "PreUpdateContainerResources", "PostUpdateContainerResources", "Tick"},
	}
	whole := func() bool { return c.recorded(t, changedID, hooks) && c.recorded(t, besideID, hooks) }
	for end, i := time.Now().Add(*changeFor), 0; time.Now().Before(end) || i < 3 || !whole(); i++ {
		pod := c.pods[i%len(c.pods)]
		if i%3 == 2 {
			c.replace(t, pod, i)
			continue
		}
		if err := update(t, node.RuntimeKind().ProxyEndpoint, containerID(t, pod), quota(5000)); err != nil {
			t.Error(err)
		}
	}
	for i, id := range []string{changedID, besideID} {
		if err := errors.Join(commands[i].Process.Signal(syscall.SIGINT), commands[i].Wait()); err != nil {
			t.Errorf("recording %s: %v", id, err)
		}
		_, end := readRecording(t, c.recordings[id])
		if end.Reason != "interrupted" || end.Calls == 0 || end.Dropped != nil {
			t.Errorf("the recording of %s ends with %+v", id, end)
		}
		t.Logf("recorded %d calls of %s", end.Calls, id)
	}
	awaitValues(t, c.pods, burstAsked)
}

// startRecording returns the command once it records.
func (c *changing) startRecording(t *testing.T, id, file, log string) *exec.Cmd {
	t.Helper()
	cmd := c.proxy.Command(t.Context(), "plugin", "record", id, "--ticks", "--for", "24h", "--max", "256Mi")
	out, err := os.Create(file)
	said, err2 := os.Create(log)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer said.Close()
	cmd.Stdout, cmd.Stderr = out, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	node.Eventually(t, time.Minute, "a recording begins", func() error {
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			text, _ := os.ReadFile(log)
			return fmt.Errorf("%s is empty (%v): %s", file, err, text)
		}
		return nil
	})
	return cmd
}

// replace removes a pod, and creates another one of its name.
func (c *changing) replace(t *testing.T, pod *core.Pod, turn int) {
	t.Helper()
	c.kubelet.Remove(t, pod)
	client := node.DialCRI(t, node.RuntimeKind().Endpoint)
	node.Eventually(t, time.Minute, "no container of pod "+pod.Name+" runs", func() error {
		all, err := client.ListContainers(t.Context(), &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
			LabelSelector: map[string]string{"io.kubernetes.pod.name": node.PodName(pod)},
			State:         &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING},
		}})
		if len(all.GetContainers()) > 0 {
			err = errors.New("one does")
		}
		return err
	})
	c.kubelet.AwaitGone(t, pod)
	pod.Labels = map[string]string{"e2e.wasmproxy.io/turn": fmt.Sprint(turn)} // a pod of its own, with another UID
	c.kubelet.Apply(t, pod)
	c.kubelet.AwaitReady(t, pod)
}

// recordedCall is a line of a recording.
type recordedCall struct {
	Hook  string
	Error string
	Asked []map[string]json.RawMessage
}

// recordingEnd is the last line.
type recordingEnd struct {
	Reason  string `json:"end"`
	Calls   int
	Dropped *json.RawMessage
}

func readRecording(t *testing.T, file string) (calls []recordedCall, end recordingEnd) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var call recordedCall
		if json.Unmarshal(lines.Bytes(), &call) == nil && call.Hook != "" {
			calls = append(calls, call)
		}
		if bytes.HasPrefix(lines.Bytes(), []byte(`{"end"`)) {
			if err := json.Unmarshal(lines.Bytes(), &end); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return calls, end
}

// recorded reports whether a recording has a call of each of its plugin's hooks.
func (c *changing) recorded(t *testing.T, id string, hooks map[string][]string) bool {
	t.Helper()
	calls, _ := readRecording(t, c.recordings[id])
	seen := map[string]bool{}
	for _, call := range calls {
		seen[call.Hook] = true
	}
	for _, hook := range hooks[id] {
		if !seen[hook] {
			return false
		}
	}
	return true
}

// sets counts the calls of a hook, or of all, that set a cgroup file.
func sets(calls []recordedCall, file, hook string) (n int) {
	for _, call := range calls {
		if hook != "" && call.Hook != hook {
			continue
		}
		for _, asked := range call.Asked {
			if strings.Contains(string(asked["cgroup_set"]), `"`+file+`"`) && asked["error"] == nil {
				n++
				break
			}
		}
	}
	return n
}

// change is a row of a table of what two versions want.
type change struct {
	Target  string
	Was, Is *string
}

func (r change) String() string {
	show := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	return fmt.Sprintf("%s: %s, %s", r.Target, show(r.Was), show(r.Is))
}

// halved is the row of a call in which the next version of qos gives half the burst.
const halved = "container cgroup file cpu.max.burst: " + burstAsked + ", " + burstNext

// replay plays both recordings to the same versions, to the next ones, and that of qos to the one that traps.
func (c *changing) replay(t *testing.T) {
	bursts := sets(c.read(t, changedID), "cpu.max.burst", "")
	created := sets(c.read(t, changedID), "cpu.max.burst", "PreCreateContainer")
	throttles := sets(c.read(t, besideID), "memory.high", "")
	if created == 0 || created == bursts || (throttles > 0) != (cgroupfs.Version() == 2) {
		t.Errorf("the recordings have %d bursts, %d of them of new containers, and %d values of memory.high", bursts, created, throttles)
	}
	for _, test := range []struct {
		id, version       string
		different, failed int
		file              string
	}{
		{changedID, "qos", 0, 0, ""},
		{changedID, "qos-next", bursts, 0, "cpu.max.burst"},
		{changedID, "qos-trap", bursts - created, created, "cpu.max.burst"},
		{besideID, "memory-qos", 0, 0, ""},
		{besideID, "memory-qos-next", throttles, 0, "memory.high"},
	} {
		all := len(c.read(t, test.id))
		want := map[string]int{"same": all - test.different - test.failed, "different": test.different, "failed": test.failed, "unknown": 0}
		outcomes, rows := c.play(t, c.recordings[test.id], test.version, test.different+test.failed > 0)
		if !maps.Equal(outcomes, want) {
			t.Errorf("%s: of %d calls came %v, want %v", test.version, all, outcomes, want)
		}
		for _, row := range rows {
			if test.id == changedID && row.String() != halved || !strings.HasSuffix(row.Target, test.file) {
				t.Errorf("%s: a call differs in %s", test.version, row)
			}
		}
		t.Logf("%s, played to %s: %v", test.id, test.version, outcomes)
	}
}

func (c *changing) read(t *testing.T, id string) []recordedCall {
	t.Helper()
	calls, _ := readRecording(t, c.recordings[id])
	return calls
}

// play returns what came of the calls of a recording, and how those differ that are different. The exit code must say whether they do, and the table for
// people must have the first row.
func (c *changing) play(t *testing.T, file, version string, differs bool) (outcomes map[string]int, rows []change) {
	t.Helper()
	module := isolation.Current().Program(version + ".wasm")
	text, err := wasmproxy(t, "plugin", "replay", file, module)
	if _, failed := errors.AsType[*exec.ExitError](err); failed != differs || err != nil && !failed {
		t.Errorf("the replay to %s ends with %v", version, err)
	}
	cmd := exec.CommandContext(t.Context(), isolation.Current().Program("wasmproxy"), "plugin", "replay", file, module, "-o", "json")
	out, _ := cmd.Output() // whose exit code tells of differences
	if code := cmd.ProcessState.ExitCode(); (code == 1) != differs || code > 1 {
		t.Errorf("the exit code of the replay to %s is %d", version, code)
	}
	var report struct {
		Outcomes map[string]int
		Calls    []struct {
			Outcome string
			Changes []change
		}
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("the replay to %s: %v\n%s", version, err, out)
	}
	for _, call := range report.Calls {
		if call.Outcome == "different" {
			rows = append(rows, call.Changes...)
		}
	}
	if len(rows) > 0 && !strings.Contains(text, strings.Join([]string{rows[0].Target, *rows[0].Was, *rows[0].Is}, "  ")) {
		t.Errorf("the table for people lacks %s:\n%s", rows[0], text)
	}
	return report.Outcomes, rows
}

// shadow has the next version beside the present one. The command, the list and the metric agree on what came of the calls, and
// no call is refused or changed.
func (c *changing) shadow(t *testing.T) {
	c.hold(t, burstAsked)
	before := c.plugin(t)
	modules := filepath.Join(c.proxy.PluginDir, ".modules")
	code, err := os.ReadFile(isolation.Current().Program("qos-next.wasm"))
	if err := errors.Join(err, os.WriteFile(filepath.Join(modules, "qos-next.wasm"), code, 0o644)); err != nil {
		t.Fatal(err)
	}
	c.deliver(t, "qos", `, "shadow": {"wasm-module": ".modules/qos-next.wasm", "timeout": "20s", "grant": ["update.others"]}`, "--wait", "1m")
	c.await(t, "has a shadow", func(p pluginState) bool {
		return p.Shadow != nil && p.Shadow.State == "active" && p.Shadow.Version == "1.1.0"
	})
	want := map[string]int{"same": 0, "different": 0, "failed": 0, "refused": 0}
	count := func(pod *core.Pod) { want[map[bool]string{true: "different", false: "same"}[asksForBurst(pod)]]++ }
	for i := range *changeCalls - 2 {
		pod, err := c.call(t, i%4 < 2)
		if err != nil {
			t.Errorf("call %d, of pod %s: %v", i, pod.Name, err)
		}
		count(pod)
	}
	fresh := changingPods("shadowed", 2)
	for _, pod := range fresh {
		c.kubelet.Apply(t, pod)
		c.kubelet.AwaitReady(t, pod)
		count(pod)
	}
	awaitValues(t, fresh, burstAsked)
	c.expectShadow(t, want)
	if p := c.plugin(t); p.Calls-before.Calls < *changeCalls || p.Failures+p.Rejections > 0 || p.Active.Version != "1.0.0" {
		t.Errorf("the plugin is %+v, and was %+v", p, before)
	}
	c.deliver(t, "qos", "", "--wait", "1m")
	c.await(t, "has no shadow", func(p pluginState) bool { return p.Shadow == nil })
	for _, pod := range fresh {
		c.kubelet.Remove(t, pod)
	}
	t.Logf("calls of the shadow: %v", want)
}

func (c *changing) expectShadow(t *testing.T, want map[string]int) {
	t.Helper()
	var report struct {
		Outcomes map[string]int
		Calls    []struct {
			Hook, Object, Outcome string
			Rows                  []change
		}
	}
	if err := c.proxy.Ask(t.Context(), &report, "plugin", "shadow", changedID); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(report.Outcomes) != fmt.Sprint(want) || len(report.Calls) != min(want["different"], 100) {
		t.Errorf("plugin shadow has %d calls, and the outcomes %v, want %v", len(report.Calls), report.Outcomes, want)
	}
	for _, call := range report.Calls {
		if call.Outcome != "different" || len(call.Rows) != 1 || call.Rows[0].String() != halved {
			t.Errorf("a call is %+v", call)
		}
	}
	said := fmt.Sprintf("%d different, 0 failed, 0 refused", want["different"])
	for before, command := range map[string][]string{
		fmt.Sprintf("calls of the shadow: %d same, ", want["same"]):             {"plugin", "shadow", changedID},
		fmt.Sprintf("its shadow, version 1.1.0: %d calls same, ", want["same"]): {"plugin", "list"},
	} {
		said := before + said
		if text, err := c.proxy.Command(t.Context(), command...).CombinedOutput(); err != nil || !strings.Contains(string(text), said) {
			t.Errorf("%q does not say %q (%v):\n%s", command, said, err, text)
		}
	}
	for outcome, n := range want {
		if n > 0 {
			awaitMetric(t, c.proxy, fmt.Sprintf(`wasmproxy_plugin_shadow_total{outcome=%q,plugin=%q} %d`, outcome, changedID, n))
		}
	}
}
