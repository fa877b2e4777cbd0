package load

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var recordFor = flag.Duration("record-for", 15*time.Second, "how long TestRecordingMemory records; make soak-record gives more")

const (
	recordedRate = 100  // calls a second
	recordedRSS  = 10e6 // bytes that they may cost
	updaters     = 40
)

// TestRecordingMemory records 100 calls a second of a plugin, with limits that flags raise. The proxy's memory may grow by 10 MB:
// what is recorded goes to the reader, and nothing stays.
func TestRecordingMemory(t *testing.T) {
	l := newLab(t)
	l.plugin("10-qos", "plugins-wasm/qos/qos.wasm", "")
	l.start(1)
	load := &traffic{client: l.dial(), pace: &pace{gap: time.Second / recordedRate}}
	ids := load.containers(updaters)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer func() {
		stop()
		all.Wait()
	}()
	for _, id := range ids {
		all.Go(func() { load.update(ctx, id) })
	}
	without := l.memory(max(*recordFor/5, 5*time.Second))
	calls := load.calls.Load()
	recording := l.path("rec.jsonl")
	out, err := os.Create(recording)
	l.must(err)
	defer out.Close()
	cmd := exec.Command(l.path("wasmproxy"), "plugin", "record", "10-qos", "--admin-socket", l.path("admin.sock"), "--config", "",
		"--for", "24h", "--rate", "1000", "--max-call", "1Mi", "--max", "1Gi")
	cmd.Stdout = out
	l.must(cmd.Start())
	with := l.memory(*recordFor)
	calls = load.calls.Load() - calls
	l.must(cmd.Process.Signal(syscall.SIGINT))
	l.must(cmd.Wait())

	first, last := with.thirds()
	before := median(without)
	text, err := os.ReadFile(recording)
	l.must(err)
	end := text[1+bytes.LastIndexByte(bytes.TrimSpace(text), '\n'):]
	var ended struct {
		Calls   int64
		Dropped json.RawMessage
	}
	l.must(json.Unmarshal(end, &ended))
	t.Logf("%d calls in %v were recorded, in %d bytes; RSS: %.0f before, %.0f in the first third, %.0f in the last (%+.1f MB)",
		ended.Calls, *recordFor, len(text), before, first, last, (last-before)/1e6)
	if grown := max(first, last) - before; grown > recordedRSS {
		t.Errorf("RSS grew by %.1f MB, want at most %.0f", grown/1e6, recordedRSS/1e6)
	}
	if ended.Calls < calls/2 || ended.Calls == 0 || ended.Dropped != nil {
		t.Errorf("of %d calls %d were recorded: %s", calls, ended.Calls, end)
	}
	for _, f := range load.failures {
		t.Error(f)
	}
}

// containers runs so many containers, whose plugin sets a burst, and returns their ids.
func (t *traffic) containers(n int) (ids []string) {
	for slot := range n {
		pod, container := config(slot, 0)
		delete(container.Annotations, "example.com/do")
		in, id := "", ""
		t.call("RunPodSandbox", func(ctx context.Context) error {
			resp, err := t.client.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: pod})
			in = resp.GetPodSandboxId()
			return err
		})
		t.call("CreateContainer", func(ctx context.Context) error {
			resp, err := t.client.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: in, Config: container, SandboxConfig: pod})
			id = resp.GetContainerId()
			return err
		})
		simple(t, "StartContainer", t.client.StartContainer, &cri.StartContainerRequest{ContainerId: id})
		ids = append(ids, id)
	}
	return ids
}

// update resizes a container up and down until the context ends.
func (t *traffic) update(ctx context.Context, id string) {
	for i := 0; ctx.Err() == nil; i++ {
		resize := &cri.LinuxContainerResources{CpuPeriod: 100_000, CpuQuota: int64(50_000 + i%2*10_000), CpuShares: 512}
		simple(t, "UpdateContainerResources", t.client.UpdateContainerResources, &cri.UpdateContainerResourcesRequest{ContainerId: id, Linux: resize})
	}
}

// memory is the proxy's resident memory, twice a second for a time.
func (l *lab) memory(during time.Duration) (rss track) {
	l.t.Helper()
	for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		now, _, err := inProc(l.proxy.Process.Pid)
		l.must(err)
		rss = append(rss, now)
	}
	return rss
}
