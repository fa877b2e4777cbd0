package daemon_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
)

// daemonConfig is set in the environment of a process that is a daemon with this configuration.
const daemonConfig = "TEST_DAEMON_CONFIG"

// isDaemon reports whether this is the process of asProcess, and is its daemon until it is killed.
func isDaemon(t *testing.T) bool {
	text, child := os.LookupEnv(daemonConfig)
	if child {
		c := new(config.Config)
		if err := json.Unmarshal([]byte(text), c); err != nil {
			t.Fatal(err)
		}
		t.Error(daemon.Run(t.Context(), c, slogsink.New(slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelDebug})))))
	}
	return child
}

// asProcess runs the daemon in a process of its own, which ends by SIGKILL.
func (n *node) asProcess(ctx context.Context, c *config.Config, _ observe.Observer) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestDurableValuesOutliveAKill$") // killed when ctx is done
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), daemonConfig+"="+string(text)), n.log, n.log
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.Exited() {
		return fmt.Errorf("it was not killed: %w", err)
	}
	return nil
}

// counting is the guest counter, of whose keys those with the prefix are durable. Its key is "n".
func counting(t *testing.T, version, prefix string) string {
	return manifested(t, "counter", `{"name":"counter","version":"`+version+`","hooks":["PreCreateContainer"],"capabilities":["annotations","metric","state.kv"],"durable":["`+prefix+`"]}`)
}

// durableNode is a node with the plugin 10-counter, whose values are durable, and a pod.
func durableNode(t *testing.T, run func(*node) runner) (n *node, pod string) {
	n = newNode(t)
	n.config.StateDir = n.dir + "/state"
	n.putRaw("10-counter.wasm", counting(t, "1", "n"))
	n.put("10-counter.json", `{"grant": ["state.kv"]}`)
	n.start(run(n))
	n.awaitLoad("10-counter")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	return n, pod
}

func inProcess(*node) runner { return daemon.Run }

func (n *node) durableFile() string { return n.config.StateDir + "/kv/10-counter.json" }

// saved waits until the file has this value of the counter's key.
func (n *node) saved(value string) {
	n.t.Helper()
	want := fmt.Sprintf(`"value":%q`, base64.StdEncoding.EncodeToString([]byte(value)))
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(n.durableFile())
		if err == nil && strings.Contains(string(text), want) {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("the file holds %s, %v, want %s", text, err, want)
		}
	}
}

// again starts the daemon again.
func (n *node) again(run runner) {
	n.t.Helper()
	n.end()
	n.log = newJournal()
	n.start(run)
	n.awaitLoad("10-counter")
}

// warned wants a line with all of the words in the log, of any time.
func (n *node) warned(words ...string) {
	n.t.Helper()
	for line := range strings.Lines(n.log.String()) {
		if containsAll(line, words) {
			return
		}
	}
	n.t.Errorf("the log has no line with %q:\n%s", words, n.log)
}

func (n *node) wantCount(pod, want string) {
	n.t.Helper()
	if got := n.count(pod, fmt.Sprintf("c%d", time.Now().UnixNano())); got != want {
		n.t.Errorf("counted %q, want %q; the log:\n%s", got, want, n.log)
	}
}

// A durable value is in a file that is the proxy's user's alone, and there after a SIGKILL.
func TestDurableValuesOutliveAKill(t *testing.T) {
	if isDaemon(t) {
		return
	}
	n, pod := durableNode(t, func(n *node) runner { return n.asProcess })
	n.wantCount(pod, "a")
	n.wantCount(pod, "b")
	n.saved("b")
	for path, mode := range map[string]os.FileMode{n.durableFile(): 0o600, filepath.Dir(n.durableFile()): os.ModeDir | 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s has the mode %v, %v, want %v", path, info.Mode(), err, mode)
		}
	}
	n.again(n.asProcess)
	n.wantCount(pod, "c")
}

// The last values of a proxy that ends are saved at once, and a version that is loaded while the
// proxy runs, or does not, has them.
func TestDurableValuesOfANewVersion(t *testing.T) {
	n, pod := durableNode(t, inProcess)
	n.wantCount(pod, "a")
	n.putRaw("10-counter.wasm", counting(t, "2", ""))
	n.awaitLoad("10-counter")
	n.wantCount(pod, "b")
	n.end()
	n.saved("b")
	n.putRaw("10-counter.wasm", counting(t, "3", "n"))
	n.again(daemon.Run)
	n.wantCount(pod, "c")
}

// The values of a plugin that is removed go, whether the proxy runs or not; those of another stay.
func TestDurableValuesOfARemovedPlugin(t *testing.T) {
	n, pod := durableNode(t, inProcess)
	n.wantCount(pod, "a")
	n.saved("a")
	n.remove("10-counter.wasm")
	n.await("plugin removed", "10-counter")
	n.eventually("the file of a plugin that is removed", "true", func() string {
		_, err := os.Stat(n.durableFile())
		return fmt.Sprint(os.IsNotExist(err))
	})
	n.putRaw("10-counter.wasm", counting(t, "1", "n"))
	n.awaitLoad("10-counter")
	n.wantCount(pod, "a")
	n.end()

	n.remove("10-counter.wasm")
	n.log = newJournal()
	n.start(daemon.Run)
	n.end()
	n.putRaw("10-counter.wasm", counting(t, "1", "n"))
	n.again(daemon.Run)
	n.wantCount(pod, "a")
}

// A file that cannot be read is a warning with its name. The plugin begins without values, and
// its next ones are saved.
func TestDurableFileThatIsDamaged(t *testing.T) {
	n, pod := durableNode(t, inProcess)
	for _, tt := range []struct{ content, want string }{
		{`{"version":1,"values":[{"key":"b`, "unexpected end of JSON input"},
		{`{"version":2,"values":[]}`, "its version is 2, and this version of wasmproxy reads 1"},
		{strings.Repeat(" ", 2<<20+1), "it is not a regular file of at most 2097152 bytes"},
	} {
		n.end()
		n.must(os.WriteFile(n.durableFile(), []byte(tt.content), 0o600))
		n.log = newJournal()
		n.start(daemon.Run)
		n.awaitLoad("10-counter")
		n.warned("state file ignored", "file=kv/10-counter.json", tt.want)
		n.wantCount(pod, "a")
		n.saved("a")
	}
	n.end()
	n.must(os.Chmod(n.durableFile(), 0o620))
	n.log = newJournal()
	n.start(daemon.Run)
	n.warned("state file ignored", "file=kv/10-counter.json", "has mode 0620, and others may use it")
}

// Values that the plugin's manifest, or the bounds of kv, do not admit any more are dropped with a
// warning, and not saved again.
func TestDurableValuesNoLongerAdmitted(t *testing.T) {
	n, pod := durableNode(t, inProcess)
	n.wantCount(pod, "a")
	n.end()
	n.putRaw("10-counter.wasm", counting(t, "2", "other/"))
	n.log = newJournal()
	n.start(daemon.Run)
	n.awaitLoad("10-counter")
	n.warned("saved values of the plugin dropped", "plugin=10-counter values=1", "not durable by the plugin's manifest")
	n.wantCount(pod, "a")
	n.end()
	n.savesNone()

	large := base64.StdEncoding.EncodeToString(make([]byte, 64<<10+1))
	n.must(os.WriteFile(n.durableFile(), []byte(`{"version":1,"values":[{"key":"bg==","value":"Yg=="},{"key":"bmI=","value":"`+large+`"}]}`), 0o600))
	n.putRaw("10-counter.wasm", counting(t, "3", "n"))
	n.log = newJournal()
	n.start(daemon.Run)
	n.awaitLoad("10-counter")
	n.warned("saved values of the plugin dropped", "plugin=10-counter values=1", "larger than the limits of kv")
	n.wantCount(pod, "c")
}

// Values that cannot be saved are a warning, once until they can.
func TestDurableValuesThatCannotBeSaved(t *testing.T) {
	n, pod := durableNode(t, inProcess)
	n.must(os.Mkdir(n.durableFile(), 0o700)) // a file cannot replace it
	n.wantCount(pod, "a")
	n.await("state file not written", "file=kv/10-counter.json")
	n.wantCount(pod, "b")
	time.Sleep(time.Second) // two writes
	n.must(os.Remove(n.durableFile()))
	n.wantCount(pod, "c")
	n.saved("c")
	if warnings := strings.Count(n.log.String(), "state file not written"); warnings != 1 {
		t.Errorf("%d warnings, want 1", warnings)
	}
}

// savesNone wants a file without values.
func (n *node) savesNone() {
	n.t.Helper()
	text, err := os.ReadFile(n.durableFile())
	if err != nil || !strings.Contains(string(text), `"values":[]`) {
		n.t.Errorf("the file of a plugin without durable values holds %s, %v", text, err)
	}
}

// Nothing is saved of a plugin that asks for nothing, and a restart loses its values.
func TestValuesThatAreNotDurable(t *testing.T) {
	n, pod := durableNode(t, inProcess)
	n.put("10-counter.wasm", "counter")
	n.awaitLoad("10-counter")
	n.wantCount(pod, "a")
	n.again(daemon.Run)
	n.wantCount(pod, "a")
	n.end()
	n.savesNone()
}
