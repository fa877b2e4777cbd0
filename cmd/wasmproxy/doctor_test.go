package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/doctor"
	"github.com/wasmproxy/wasmproxy/runtime/host"
	"github.com/wasmproxy/wasmproxy/runtime/lastgood"
)

// diagnose runs doctor on a host with these files.
func diagnose(t *testing.T, files map[string]string, args ...string) (code int, out, errs string) {
	t.Helper()
	return diagnoseIn(t, hostWith(t, files), args...)
}

// hostWith returns the directory of a host with these files.
func hostWith(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := os.MkdirTemp("", "wp") // sockets' paths must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(root+path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(root+path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// diagnoseIn runs doctor on the host of a directory.
func diagnoseIn(t *testing.T, root string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), newRoot(host.SettingsFile), append([]string{"doctor", "--root", root}, args...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// TestDoctorReadsTheSettings: those of the host's file count, and wrong ones are a finding.
func TestDoctorReadsTheSettings(t *testing.T) {
	code, out, errs := diagnose(t, map[string]string{host.SettingsFile: "backnd: unix:///run/x.sock\n"})
	for _, part := range []string{"ERROR: settings\n", `unknown key "backnd"`, "  remedy: Correct the key", "not checked: settings-active, proxy-serves, ", ": the settings are not known\n"} {
		if !strings.Contains(out, part) {
			t.Errorf("the text lacks %q", part)
		}
	}
	if code != exitDoctorError || !strings.Contains(errs, "errors: 1, warnings: 0") || t.Failed() {
		t.Errorf("exit code %d, %s\n%s", code, errs, out)
	}
}

// TestDoctorTakesTheLastGoodSettings that the proxy of the host has kept of its file, which is wrong now.
func TestDoctorTakesTheLastGoodSettings(t *testing.T) {
	root := hostWith(t, map[string]string{host.SettingsFile: "backnd: unix:///run/x.sock\n"})
	store, err := lastgood.Open(root + config.Default().DataDir)
	if err == nil {
		err = store.KeepSettings(lastgood.Settings{File: host.SettingsFile, Text: []byte("listen: unix:///run/kept.sock\ncache-dir: \"\"\n")})
	}
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := diagnoseIn(t, root)
	if code != exitDoctorError || !strings.Contains(out, "ERROR: settings\n") || !strings.Contains(out, "unix:///run/kept.sock") {
		t.Errorf("exit code %d, %s\n%s", code, errs, out)
	}
}

// TestDoctorLooksAtItsSettingsFile, and not at the one that it would read without --config.
func TestDoctorLooksAtItsSettingsFile(t *testing.T) {
	root := hostWith(t, map[string]string{host.SettingsFile: "", "/own.yaml": "cgroup-root: \"\"\ncache-dir: \"\"\n"})
	for _, file := range []string{host.SettingsFile, "/own.yaml"} {
		if err := os.Chmod(root+file, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	_, out, _ := diagnoseIn(t, root, "--config", root+"/own.yaml")
	if !strings.Contains(out, "trusted-files\n  where:  /own.yaml\n") || strings.Contains(out, host.SettingsFile) {
		t.Errorf("it finds\n%s", out)
	}
}

// TestDoctorAsJSON has a host without a proxy and a runtime, which are errors.
func TestDoctorAsJSON(t *testing.T) {
	code, out, errs := diagnose(t, map[string]string{host.SettingsFile: "listen: unix:///run/here.sock\ncgroup-root: \"\"\ncache-dir: \"\"\n"}, "-o", "json")
	var r doctor.Report
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitDoctorError || !strings.Contains(errs, "errors: 2") {
		t.Fatalf("exit code %d, %s, %v:\n%s", code, errs, err, out)
	}
	if len(r.Findings) < 2 || r.Findings[0].Check != "proxy-serves" || r.Findings[0].Where != "unix:///run/here.sock" || r.Findings[1].Check != "backend-answers" {
		t.Errorf("findings %+v", r.Findings)
	}
}

// TestDoctorEndsWithItsContext: what was not asked is no finding.
func TestDoctorEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	args := []string{"doctor", "--root", t.TempDir(), "--cgroup-root", "", "--cache-dir", ""}
	code := run(ctx, newRoot(""), args, &out, &errs)
	if code != exitFailure || out.Len() > 0 || !strings.Contains(errs.String(), context.Canceled.Error()) {
		t.Errorf("exit code %d, %s\n%s", code, errs.String(), out.String())
	}
}

// TestDoctorExitCodes: the worst finding decides.
func TestDoctorExitCodes(t *testing.T) {
	for _, test := range []struct {
		found []doctor.Severity
		want  int
	}{
		{nil, exitOK}, {[]doctor.Severity{doctor.Note}, exitOK}, {[]doctor.Severity{doctor.Note, doctor.Warning}, exitDoctorWarning},
		{[]doctor.Severity{doctor.Warning, doctor.Error, doctor.Note}, exitDoctorError},
	} {
		r := new(doctor.Report)
		for _, s := range test.found {
			r.Findings = append(r.Findings, doctor.Finding{Severity: s})
		}
		got := exitOK
		if err, ok := diagnosisError(r).(coded); ok {
			got = err.code
		}
		if got != test.want {
			t.Errorf("%v: exit code %d, want %d", test.found, got, test.want)
		}
	}
	if code, _, errs := diagnose(t, nil, "-o", "yaml"); code != exitUsage || !strings.Contains(errs, "--output") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
