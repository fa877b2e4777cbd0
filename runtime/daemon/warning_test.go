package daemon_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// manifested is a guest of testdata/wat with another manifest, in a custom section.
func manifested(t *testing.T, name, manifest string) string {
	section := binary.AppendUvarint(nil, uint64(len("wp.manifest")))
	section = append(append(section, "wp.manifest"...), manifest...)
	head := binary.AppendUvarint([]byte{0}, uint64(len(section)))
	return module(t, name) + string(head) + string(section)
}

const greedy = `{"name": "greedy", "version": "1.0.0",
	"hooks": ["PreRunPodSandbox", {"hook": "PostRemoveImage", "match": {"namespaces": ["prod"]}}, {"hook": "PreRemoveImage", "match": {"namespaces": ["!prod"]}}],
	"limits": {"fuel": 30000000, "memory": 65536, "time_ms": 400, "host_calls": 2000}}`

var greedyNotes = []string{
	`msg="runtime-hooks names hooks that the plugin does not have" plugin=10-greedy hooks=[PreExec]`,
	`msg="plugin is never called in a hook: its match asks for a value that no image has" plugin=10-greedy hook=PostRemoveImage key=namespaces match_of=manifest`,
}

// What a plugin asks for in vain, and what its file does, is said once for each load.
func TestNotes(t *testing.T) {
	n := newNode(t)
	n.putRaw("10-greedy.wasm", manifested(t, "noop", greedy))
	n.put("10-greedy.json", `{"runtime-hooks": ["PreRunPodSandbox", "PostRemoveImage", "PreExec"]}`)
	n.start(daemon.Run)
	n.await("plugins active", "10-greedy")
	n.put("20-quota.wasm", "quota")
	n.awaitActive("10-greedy", "20-quota")
	wantNotes(t, n, greedyNotes...)
	n.put("10-greedy.json", `{"runtime-hooks": ["PreRunPodSandbox", "PreRemoveImage"], "match": {"labels": {"a": "b"}}, "limits": {"fuel": 40000000, "host-calls": 5000}}`)
	n.awaitLoad("10-greedy")
	wantNotes(t, n, append(greedyNotes,
		`msg="plugin is never called in a hook: its match asks for a value that no image has" plugin=10-greedy hook=PreRemoveImage key=labels match_of=10-greedy.json`)...)
}

// wantNotes wants exactly these warnings in the log.
func wantNotes(t *testing.T, n *node, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(n.log.String()) {
		if _, line, warning := strings.Cut(strings.TrimSpace(line), "level=WARN "); warning && strings.Contains(line, "10-greedy") {
			got = append(got, line)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Who checks before is told the same.
func TestNotesOfACheck(t *testing.T) {
	n := newNode(t)
	n.putRaw("10-greedy.wasm", manifested(t, "noop", greedy))
	lines, err := daemon.Check(t.Context(), n.config, false)
	n.must(err)
	want := []string{
		"10-greedy: greedy 1.0.0, Ignore, hooks PreRunPodSandbox, PreRemoveImage, PostRemoveImage",
		"10-greedy: warning: plugin is never called in a hook: its match asks for a value that no image has: hook PostRemoveImage, key namespaces, match_of manifest",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("says\n%s", strings.Join(lines, "\n"))
	}
}

// TestShadowOfACheck: a shadow that would not be loaded is a warning of its plugin.
func TestShadowOfACheck(t *testing.T) {
	n := newNode(t)
	n.put("10-twin.wasm", "noop")
	n.must(os.Mkdir(filepath.Join(n.config.PluginDir, ".modules"), 0o755))
	for name, content := range map[string]string{"good": module(t, "noop"), "empty": "\x00asm\x01\x00\x00\x00"} {
		n.must(os.WriteFile(filepath.Join(n.config.PluginDir, ".modules", name+".wasm"), []byte(content), 0o644))
	}
	for shadow, want := range map[string]string{
		`{"wasm-module": ".modules/good.wasm"}`:              "",
		`{"wasm-module": ".modules/good.wasm", "match": {}}`: `unknown key "match"`,
		`{"wasm-module": ".modules/gone.wasm"}`:              "there is no .modules/gone.wasm beside the file",
		`{"wasm-module": ".modules/empty.wasm"}`:             "it does not export wp_hook",
	} {
		n.put("10-twin.json", `{"shadow": `+shadow+`}`)
		lines, err := daemon.Check(t.Context(), n.config, true)
		n.must(err)
		const warning = "10-twin: warning: shadow of a plugin not loaded: "
		got := strings.Join(lines[1:], "\n")
		said, warned := strings.CutPrefix(got, warning)
		if warned != (want != "") || !strings.Contains(said, want) {
			t.Errorf("shadow %s: it warns %q, want %q", shadow, got, want)
		}
	}
}

// In mode docker, a plugin that guards exec is active and never called for it, which its operator has to
// know. A hook that runtime-hooks leaves out is not missed.
func TestHooksThatDockerDoesNotHave(t *testing.T) {
	n := newNode(t)
	n.putRaw("10-guard.wasm", manifested(t, "noop", `{"name": "guard", "version": "1.0.0", "hooks": ["PreExec", "PreCreateContainer", "PrePullImage", "Tick"], "tick_ms": 60000}`))
	for mode, want := range map[string]string{
		config.ModeCRI:    "",
		config.ModeDocker: "10-guard: warning: plugin has hooks in which mode docker never calls it: hooks [PreExec PrePullImage]",
	} {
		n.config.Mode = mode
		lines, err := daemon.Check(t.Context(), n.config, false)
		n.must(err)
		if got := strings.Join(lines[1:], "\n"); got != want {
			t.Errorf("in mode %s it warns %q, want %q", mode, got, want)
		}
	}
	n.put("10-guard.json", `{"runtime-hooks": ["PreCreateContainer"]}`)
	if lines, err := daemon.Check(t.Context(), n.config, false); err != nil || len(lines) != 1 {
		t.Errorf("without the hooks it says %q, %v", lines, err)
	}
}

// TestCheckMakesNoState: whoever checks needs no right to write to state-dir and data-dir, and the proxy that has them may run.
func TestCheckMakesNoState(t *testing.T) {
	n := newNode(t)
	n.config.StateDir, n.config.DataDir = n.dir+"/none/state", n.dir+"/none/data"
	_, err := daemon.Check(t.Context(), n.config, false)
	n.must(err)
	if all, err := os.ReadDir(n.dir + "/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a check has made %v, %v", all, err)
	}
}

// TestCheckOfOneDirectory: a directory that is named twice, by a link or before it is there, is refused
// by a check as by serve.
func TestCheckOfOneDirectory(t *testing.T) {
	n := newNode(t)
	link := n.dir + "/link"
	n.must(os.Symlink("plugins.d", link))
	for _, dirs := range [][2]string{{n.config.PluginDir, link}, {n.dir + "/none", n.dir + "/none/"}} {
		c := *n.config
		c.PluginDir, c.HookDir = dirs[0], dirs[1]
		if _, err := daemon.Check(t.Context(), &c, false); err == nil || !strings.Contains(err.Error(), "are one directory") {
			t.Errorf("checking %q: %v", dirs, err)
		}
		if err := daemon.Run(t.Context(), &c, observe.Discard()); err == nil || !strings.Contains(err.Error(), "are one directory") {
			t.Errorf("serving with %q: %v", dirs, err)
		}
	}
}
