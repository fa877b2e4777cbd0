package host

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// running starts a process of a copy of sleep, at a path that systemctl reports as the service's.
func running(t *testing.T, restart string) (program, calls string) {
	t.Helper()
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(t.TempDir(), "sleep")
	if err := os.WriteFile(program, content, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return program, fakeSystemctl(t, "[ \"$1\" != show ] || echo MainPID="+strconv.Itoa(cmd.Process.Pid)+"\n[ \"$1\" != restart ] || "+restart+"\n")
}

// replace puts another file in the place of a program, as an installation does.
func replace(t *testing.T, program, script string) {
	t.Helper()
	if err := os.WriteFile(program+".new", []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(program+".new", program); err != nil {
		t.Fatal(err)
	}
}

// TestRenewByTheProcess: the service is restarted if it runs another file than the host has, also if an earlier
// installation or a package wrote it, and if that accepts the settings and plugins. A restart that fails is an error.
func TestRenewByTheProcess(t *testing.T) {
	const restart = "restart wasmproxy.service\n"
	for name, c := range map[string]struct {
		restart                      string
		replaced, elsewhere, missing bool
		script, says, err            string
	}{
		"the same program":        {restart: "true"},
		"a new program":           {restart: "true", replaced: true, says: "the service has the new program\n"},
		"a program that does not": {restart: "{ echo no >&2; exit 1; }", replaced: true, err: "kubelet cannot start pods until it serves"},
		"a program that is not valid": {restart: "true", replaced: true, script: "echo 10-a: not loaded: $1; exit 1",
			err: "the service goes on with the former one: correct this first:\n10-a: not loaded: validate"},
		"a program elsewhere":   {restart: "true", elsewhere: true, says: "sleep until it restarts: systemctl restart wasmproxy.service\n"},
		"a package's elsewhere": {restart: "true", missing: true},
	} {
		t.Run(name, func(t *testing.T) {
			program, calls := running(t, c.restart)
			if c.replaced {
				replace(t, program, c.script)
			}
			if c.elsewhere {
				program = filepath.Join(t.TempDir(), "wasmproxy")
				replace(t, program, "")
			}
			if c.missing {
				program = filepath.Join(t.TempDir(), "wasmproxy")
			}
			h, out := newHost(t, nil)
			h.Root = "/"
			err := (&installation{host: h, program: program}).renew(t.Context())
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %v, want %q", err, c.err)
			}
			if got := out.String(); c.says == "" && got != "" || !strings.HasSuffix(got, c.says) {
				t.Errorf("it says %q, want %q", got, c.says)
			}
			called, err := os.ReadFile(calls)
			if err != nil || strings.Contains(string(called), restart) != (c.replaced && c.script == "") {
				t.Errorf("systemctl was called with\n%s%v", called, err)
			}
		})
	}
}

// TestRenewWithoutProcess: a service without a process is an error, since nobody knows what it would run.
func TestRenewWithoutProcess(t *testing.T) {
	fakeSystemctl(t, "echo MainPID=0\n")
	h, _ := newHost(t, nil)
	h.Root = "/"
	if err := (&installation{host: h, program: h.Program}).renew(t.Context()); err == nil || !strings.Contains(err.Error(), "finding the program that wasmproxy.service runs") {
		t.Errorf("got %v", err)
	}
}

// TestProgramIsCheckedBeforeItReplaces: a new program that does not accept the node's settings or plugins replaces none.
func TestProgramIsCheckedBeforeItReplaces(t *testing.T) {
	newer := change{path: programFile, before: []byte("old"), after: []byte("new"), program: true}
	for name, c := range map[string]struct {
		own  []change
		fail bool
	}{
		"a newer program":     {[]change{newer}, true},
		"no change":           {nil, false},
		"the first one":       {[]change{{path: programFile, after: []byte("new"), program: true}}, false},
		"no settings yet":     {[]change{newer, {path: SettingsFile}}, false},
		"a package has it":    {[]change{{path: programFile, before: []byte("old"), program: true}}, false},
		"another file is new": {[]change{{path: listenDropIn, before: []byte("old"), after: []byte("new")}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHost(t, nil)
			h.Root = "/"
			if err := os.WriteFile(h.Program, []byte("#!/bin/sh\necho \"10-a: not loaded: $*\"\nexit 1\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			err := (&installation{host: h, own: c.own}).checkProgram(t.Context())
			if !c.fail && err != nil {
				t.Error(err)
			}
			if want := "10-a: not loaded: validate --config /etc/wasmproxy/wasmproxy.yaml"; c.fail && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// TestPackageUpgradeSaysWhy: a package whose program is not taken says why, and which commands help.
func TestPackageUpgradeSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		validate, restart string
		want              []string
	}{
		"taken":          {"true", "true", []string{"wasmproxy serves with the new program.\n"}},
		"not valid":      {"false", "true", []string{"wasmproxy goes on with the program from before the upgrade until its process ends, as at a reboot: then the new one starts, or fails. Correct what is said above, then: systemctl restart wasmproxy\n"}},
		"does not start": {"true", "exit 1", []string{"no cgroups\nwasmproxy does not start", "install the package from before"}},
	} {
		t.Run(name, func(t *testing.T) {
			calls := fakeSystemctl(t, "[ \"$1\" != restart ] || "+c.restart+"\n")
			root := t.TempDir()
			for path, text := range map[string]string{
				root + "/usr/bin/wasmproxy":                      c.validate,
				filepath.Join(filepath.Dir(calls), "journalctl"): "echo 'no cgroups'",
			} {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(root+"/run/systemd/system", 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "sh", "../../deploy/packages/postinstall.sh", "configure", "1.0.0")
			cmd.Env = append(os.Environ(), "DPKG_ROOT="+root)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Error(err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("it says\n%s, want %q", out, want)
				}
			}
		})
	}
}
