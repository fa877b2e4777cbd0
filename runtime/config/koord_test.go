package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/wasmproxy/wasmproxy/runtime/config"
)

func loadKoord(t *testing.T, args ...string) (*config.Config, error) {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.KoordFlags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return config.LoadKoord(fs, config.ReadFile(fs))
}

// TestKoordDefaults are those of koord-runtime-proxy v1.8.0; what it does not
// have is as serve has it.
func TestKoordDefaults(t *testing.T) {
	got, err := loadKoord(t)
	if err != nil {
		t.Fatal(err)
	}
	want, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	want.Listen, want.Backend = "/var/run/koord-runtimeproxy/runtimeproxy.sock", "/var/run/containerd/containerd.sock"
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", *got, *want)
	}
	if got.HookDir != "/etc/runtime/hookserver.d" || got.SkipLabel != "runtimeproxy.koordinator.sh/skip-hookserver=true" || got.KoordCompat {
		t.Errorf("got %+v", *got)
	}
}

func TestKoordFlags(t *testing.T) {
	c, err := loadKoord(t, "--koord-runtimeproxy-endpoint=/a.sock", "--remote-runtime-service-endpoint", "unix:///b.sock",
		"--remote-image-service-endpoint=/c.sock", "--backend-runtime-mode=Containerd",
		"--runtime-hook-server-key=example.com/skip", "--runtime-hook-server-val=yes", "--koord-compat", "--log-level=debug")
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "/a.sock" || c.Backend != "unix:///b.sock" || c.ImageEndpoint != "/c.sock" || c.SkipLabel != "example.com/skip=yes" || !c.KoordCompat || c.LogLevel != "debug" {
		t.Errorf("got %+v", *c)
	}
	if c, err = loadKoord(t, "--remote-image-service-endpoint=/var/run/containerd/containerd.sock"); err != nil || c.ImageEndpoint != "" {
		t.Errorf("the runtime's own socket as that of images: %+v, %v", c, err)
	}
	if c, err = loadKoord(t, "--runtime-hook-server-val=yes"); err != nil || c.SkipLabel != "runtimeproxy.koordinator.sh/skip-hookserver=yes" {
		t.Errorf("the value alone: %+v, %v", c, err)
	}
}

// TestKoordFlagsWin over the file, whose keys are the settings' own.
func TestKoordFlagsWin(t *testing.T) {
	file := filepath.Join(t.TempDir(), "wasmproxy.yaml")
	if err := os.WriteFile(file, []byte("backend: /file.sock\nlisten: /file-listen.sock\nkoord-compat: true\nskip-label: a=b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := loadKoord(t, "--config", file, "--remote-runtime-service-endpoint=/flag.sock", "--koord-compat=false", "--runtime-hook-server-key=k")
	if err != nil {
		t.Fatal(err)
	}
	if c.Backend != "/flag.sock" || c.Listen != "/file-listen.sock" || c.KoordCompat || c.SkipLabel != "k=true" {
		t.Errorf("got %+v", *c)
	}
	if c, err = loadKoord(t, "--config", file); err != nil || !c.KoordCompat || c.SkipLabel != "a=b" {
		t.Errorf("from the file: %+v, %v", c, err)
	}
}

func TestKoordBackendModes(t *testing.T) {
	for mode, want := range map[string]string{
		"docker":     "--backend-runtime-mode=docker: unknown runtime engine backend",
		"containerd": "--backend-runtime-mode=containerd: unknown runtime engine backend",
	} {
		if _, err := loadKoord(t, "--backend-runtime-mode="+mode); !errors.Is(err, config.ErrBackendMode) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", mode, err, want)
		}
	}
	c, err := loadKoord(t, "--backend-runtime-mode=Docker", "--remote-runtime-service-endpoint=/run/docker.sock", "--remote-image-service-endpoint=/run/docker.sock")
	if err != nil || c.Mode != config.ModeDocker || c.Backend != "/run/docker.sock" {
		t.Errorf("Docker: %+v, %v", c, err)
	}
	for socket, runtime := range map[string]string{
		"/var/run/containerd/containerd.sock": "containerd", "/run/k3s/containerd/containerd.sock": "containerd", "/run/cri-dockerd.sock": "cri-dockerd",
	} {
		_, err := loadKoord(t, "--backend-runtime-mode=Docker", "--remote-runtime-service-endpoint="+socket)
		if err == nil || !strings.Contains(err.Error(), "is the socket of "+runtime+", and mode is docker: name Docker's, such as unix:///run/docker.sock") {
			t.Errorf("Docker at %s: error %v", socket, err)
		}
	}
	if _, err := loadKoord(t, "--runtime-hook-server-key="); err == nil || !strings.Contains(err.Error(), "skip-label") {
		t.Errorf("label without a key: %v", err)
	}
}
