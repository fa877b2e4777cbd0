package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/delivery"
)

// TestTry takes for a refusal only what the program says is one. The programs stand for what a node can do to it.
func TestTry(t *testing.T) {
	for _, test := range []struct {
		name, program, says string
		refused             bool
	}{
		{"would load", "exit 0", "", false},
		{"would not load", fmt.Sprintf("echo wasmproxy: no hook >&2; exit %d", delivery.ExitRefused), "refused: wasmproxy: no hook", true},
		{"full disk", "echo no space left on device >&2; exit 1", `exit status 1; it said "no space left on device"`, false},
		{"wrong settings", "exit 2", "exit status 2", false},
		{"killed", "kill -KILL $$", "signal: killed", false},
		{"missing", "", "no such file or directory", false},
	} {
		dir := t.TempDir()
		a := &Agent{Options: Options{PluginDir: dir, Program: filepath.Join(dir, "wasmproxy")}}
		if err := os.Mkdir(filepath.Join(dir, ownDir), 0o700); err != nil {
			t.Fatal(err)
		}
		if test.program != "" {
			if err := os.WriteFile(a.Program, []byte("#!/bin/sh\n"+test.program+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		err := a.try(t.Context(), dir, "50-p")
		if errors.Is(err, errRefused) != test.refused || (err == nil) != (test.says == "") {
			t.Errorf("%s: %v", test.name, err)
		}
		if err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: the error is %q, without %q", test.name, err, test.says)
		}
	}
}

// TestOneTryAtATime: a new node may have many plugins to try, and a limit of memory for all that the agent does.
func TestOneTryAtATime(t *testing.T) {
	dir := t.TempDir()
	a := &Agent{Options: Options{PluginDir: dir, Program: filepath.Join(dir, "wasmproxy")}}
	const program = "#!/bin/sh\nmkdir $0.runs && sleep 0.3 && rmdir $0.runs\n"
	if err := errors.Join(os.Mkdir(filepath.Join(dir, ownDir), 0o700), os.WriteFile(a.Program, []byte(program), 0o700)); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for range 3 {
		go func() { errs <- a.try(t.Context(), dir, "50-p") }()
	}
	for range 3 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}
