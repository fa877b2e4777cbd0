package dockermode_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// scriptTimeout is how long a script of docker commands may take. It takes a few seconds.
const scriptTimeout = 2 * time.Minute

// expected are lines that a script prints where it works: two runs that fail alike prove nothing.
var expected = map[string][]string{
	"build":    {"hello", "for me", "from scratch", "exit 3"},
	"compose":  {"web: hello from web", "linked: hello from web", "exit 1"},
	"cp":       {"hello", "4000000 /tmp/large", "greeting"},
	"events":   {"container create events <no value>", "container die events 3", "container destroy events <no value>"},
	"exec":     {"out", "after the end of the input", "exit 3", "made", "exit 126"},
	"images":   {"made", "imported:tagged"},
	"logs":     {"out 3", "tick", "4"},
	"pty":      {"got hello", "got again", "got one", "exit 5", "true"},
	"run":      {"out", "exit 7", "after the end of the input", "5000000", "exit 127", "exit 125"},
	"stop":     {"USR1", "TERM", "9", "137", "exit 1"},
	"update":   {"30000", "67108864", "exit 1"},
	"versions": {"1.24 1.41", "exit 3", "exit 1"},
}

// TestDockerClient runs Docker's client with and without wasmproxy, and compares all that it prints and
// how it ends. The plugin noop is asked about nothing: no container here is of Kubernetes.
func TestDockerClient(t *testing.T) {
	engine := startDocker(t)
	proxy := node.StartProxy(t, node.Noop)
	t.Run("scripts", func(t *testing.T) {
		for name, lines := range expected {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				direct := runScript(t, engine.Endpoint, name)
				for _, line := range lines {
					if !strings.Contains("\n"+direct.out, "\n"+line+"\n") {
						t.Errorf("without wasmproxy nothing prints %q:\n%s%s", line, direct.out, direct.err)
					}
				}
				proxied := runScript(t, engine.ProxyEndpoint, name)
				if d := cmp.Diff(direct.out, proxied.out); d != "" {
					t.Errorf("wasmproxy changes the output (-direct +proxied):\n%s", d)
				}
				if d := cmp.Diff(direct.err, proxied.err); d != "" {
					t.Errorf("wasmproxy changes the errors (-direct +proxied):\n%s", d)
				}
			})
		}
	})
	served := proxy.Stop(t)
	delete(served.Hooks, "Tick")
	if len(served.Hooks) != 0 {
		t.Errorf("hooks ran for containers that Kubernetes did not make: %v", served.Hooks)
	}
}

// printed is what a script printed, without what differs from run to run.
type printed struct{ out, err string }

// runScript runs a script of the directory cli with Docker's client for an endpoint.
func runScript(t *testing.T, endpoint, name string) printed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", `. cli/prelude.bash; . "$0"`, filepath.Join("cli", name+".sh"))
	dir := t.TempDir()
	cmd.Env = append(os.Environ(), "PATH="+isolation.Current().Bin()+":"+os.Getenv("PATH"), "DOCKER_HOST="+endpoint, "DOCKER_CONFIG="+dir, "TMPDIR="+dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	if err := cmd.Run(); err != nil {
		t.Errorf("%s at %s: %v; it printed\n%s%s", name, endpoint, err, out.Bytes(), errs.Bytes())
	}
	return printed{normalize(out.String(), dir), normalize(errs.String(), dir)}
}

var (
	objectID  = regexp.MustCompile(`\b[0-9a-f]{64}\b|\b[0-9a-f]{12}\b`)
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*(Z| [-+]\d{4} \w+)?`)
	duration  = regexp.MustCompile(`\b\d+\.\d+s\b`)
)

// canceled is what the client's goroutine for the container's end prints after a start that failed,
// unless the client has ended before.
const canceled = `time="TIME" level=error msg="error waiting for container: context canceled"` + "\n"

// normalize replaces ids by the order of their first appearance, so that the same one stays the same,
// and times.
func normalize(text, dir string) string {
	known := map[string]string{}
	text = objectID.ReplaceAllStringFunc(text, func(id string) string {
		short := id[:12]
		if known[short] == "" {
			known[short] = fmt.Sprintf("ID%d", len(known)+1)
		}
		return fmt.Sprintf("%s(%d)", known[short], len(id))
	})
	text = timestamp.ReplaceAllString(text, "TIME")
	text = strings.ReplaceAll(text, canceled, "")
	text = duration.ReplaceAllString(text, "DURATION")
	text = regexp.MustCompile(regexp.QuoteMeta(dir)+`/tmp\.\w+`).ReplaceAllString(text, "DIR")
	return strings.ReplaceAll(text, "\r\n", "\n")
}
