package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/wasmproxy/wasmproxy/runtime/config"
)

func load(t *testing.T, file string, args ...string) (*config.Config, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "wasmproxy.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append([]string{"--config", path}, args...)
	}
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.Flags(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return config.Load(fs)
}

func TestDefaults(t *testing.T) {
	c, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if c.DrainTimeout != 3*time.Second || c.Listen != "unix:///run/wasmproxy/wasmproxy.sock" || c.LogLevel != "info" || c.GuestBytes() != 256<<20 {
		t.Errorf("unexpected defaults: %+v", *c)
	}
}

func TestLaterSourcesWin(t *testing.T) {
	file := "---\nbackend: /file.sock\nlog-level: warn\ncgroup-mode: v1\ndrain-timeout: 10s\n---\n# no more\n"
	t.Setenv("WASMPROXY_LOG_LEVEL", "error")
	t.Setenv("WASMPROXY_CGROUP_MODE", "v2")
	c, err := load(t, file, "--cgroup-mode=auto")
	if err != nil {
		t.Fatal(err)
	}
	if c.Backend != "/file.sock" || c.LogLevel != "error" || c.CgroupMode != "auto" || c.DrainTimeout != 10*time.Second {
		t.Errorf("got %+v", *c)
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	tests := []struct {
		name, file string
		args       []string
		env        [2]string
		want       string
	}{
		{"unknown key", "backed: /x\n", nil, [2]string{}, `unknown key "backed"`},
		{"not YAML", "\t{", nil, [2]string{}, "wasmproxy.yaml"},
		{"text after the settings", "{log-level: info}\n}", nil, [2]string{}, "did not find expected <document start>"},
		{"a second document", "log-level: info\n---\nlog-level: debug\n", nil, [2]string{}, "wasmproxy.yaml: it has a second YAML document"},
		{"relative endpoint", "", []string{"--backend=x.sock"}, [2]string{}, `backend: "x.sock"`},
		{"own socket", "", []string{"--backend=/run/./wasmproxy/wasmproxy.sock"}, [2]string{}, "own socket"},
		{"own socket by a link", "", []string{"--backend=/var/run/wasmproxy/wasmproxy.sock"}, [2]string{}, "own socket"},
		{"admin socket for calls by a link", "", []string{"--admin-socket=/var/run/wasmproxy/wasmproxy.sock"}, [2]string{}, "is the socket of listen"},
		{"status socket beside the admin socket by a link", "", []string{"--status-socket=/var/run/wasmproxy/status.sock"}, [2]string{}, "must not hold the socket of listen"},
		{"admin socket that is no path", "", []string{"--admin-socket=admin.sock"}, [2]string{}, `admin-socket: "admin.sock" is not unix:// and an absolute path`},
		{"status socket beside the admin socket", "", []string{"--status-socket=/run/wasmproxy/status.sock"}, [2]string{}, `status-socket: "/run/wasmproxy/status.sock": its directory must not hold the socket of listen, `},
		{"status socket that is no path", "", []string{"--status-socket=status.sock"}, [2]string{}, `status-socket: "status.sock" is not unix:// and an absolute path`},
		{"admin socket for calls", "", []string{"--admin-socket=/run/wasmproxy/wasmproxy.sock"}, [2]string{}, `admin-socket: "/run/wasmproxy/wasmproxy.sock" is the socket of listen`},
		{"metrics on no address", "", []string{"--metrics-listen=9750"}, [2]string{}, `metrics-listen: "9750" is not an address such as 127.0.0.1:9750`},
		{"metrics on no port", "", []string{"--metrics-listen=:0"}, [2]string{}, `metrics-listen: ":0" is not an address`},
		{"cache is no path", "", []string{"--cache-dir=cache"}, [2]string{}, `cache-dir: "cache" is not an absolute path`},
		{"cache among plugins", "", []string{"--cache-dir=/etc/wasmproxy/plugins.d/.cache"}, [2]string{}, `cache-dir: "/etc/wasmproxy/plugins.d/.cache" and plugin-dir`},
		{"cache around hooks", "", []string{"--cache-dir=/etc/runtime"}, [2]string{}, `cache-dir: "/etc/runtime" and hook-dir`},
		{"mode", "", []string{"--cgroup-mode=3"}, [2]string{}, "cgroup-mode"},
		{"an audit log at no absolute path", "", []string{"--audit-log=audit.json"}, [2]string{}, `audit-log: "audit.json" is neither journald nor an absolute path`},
		{"an audit log of no size", "", []string{"--audit-log-size=100"}, [2]string{}, `audit-log-size: "100" is not a size such as 256Mi`},
		{"an audit log that is too large", "", []string{"--audit-log-size=1048577Mi"}, [2]string{}, `audit-log-size: "1048577Mi" is more than 1048576Mi`},
		{"leading zero in a variable", "", nil, [2]string{"WASMPROXY_AUDIT_LOG_COUNT", "012"}, `environment variable WASMPROXY_AUDIT_LOG_COUNT: audit-log-count: "012" is not a whole number such as 5`},
		{"leading zero in a text", "audit-log-count: \"010\"\n", nil, [2]string{}, `audit-log-count: "010" is not a whole number such as 5`},
		{"no renamed audit log", "", []string{"--audit-log-count=0"}, [2]string{}, `audit-log-count: 0 is not between 1 and 1000`},
		{"memory without a unit", "", []string{"--guest-memory=256"}, [2]string{}, `guest-memory: "256" is not a size such as 256Mi`},
		{"no memory", "", []string{"--guest-memory=0Mi"}, [2]string{}, `guest-memory: "0Mi"`},
		{"memory in a file", "guest-memory: 64MB\n", nil, [2]string{}, `guest-memory: "64MB"`},
		{"duration in a file", "drain-timeout: soon\n", nil, [2]string{}, `wasmproxy.yaml: drain-timeout: "soon" is not a time span such as 4m`},
		{"duration in a variable", "", nil, [2]string{"WASMPROXY_DRAIN_TIMEOUT", "240"}, `environment variable WASMPROXY_DRAIN_TIMEOUT: drain-timeout: "240" is not a time span such as 4m`},
		{"negative duration", "drain-timeout: -4m\n", nil, [2]string{}, `wasmproxy.yaml: drain-timeout: -4m0s is not greater than 0`},
		{"duration without a unit", "drain-timeout: 240\n", nil, [2]string{}, "wasmproxy.yaml: drain-timeout: 240"},
		{"list", "plugin-dir: [/a, /b]\n", nil, [2]string{}, "wasmproxy.yaml: plugin-dir"},
		{"switch in a file", "koord-compat: \"yes\"\n", nil, [2]string{}, "wasmproxy.yaml: koord-compat: yes is not true or false"},
		{"switch that is a list", "koord-compat: [true]\n", nil, [2]string{}, "wasmproxy.yaml: koord-compat"},
		{"switch in a variable", "", nil, [2]string{"WASMPROXY_KOORD_COMPAT", "maybe"}, `environment variable WASMPROXY_KOORD_COMPAT: koord-compat: "maybe" is not true or false`},
		{"text that is a switch", "listen: true\n", nil, [2]string{}, "wasmproxy.yaml: listen: true is not text"},
		{"label", "", []string{"--skip-label=example.com/skip"}, [2]string{}, `skip-label: "example.com/skip" is not a label such as`},
		{"namespace", "exempt-namespaces: kube-system,Kube_System\n", nil, [2]string{}, `wasmproxy.yaml: exempt-namespaces: "Kube_System" is not the name of a namespace, such as kube-system: `},
		{"namespace in a list", "exempt-namespaces: [kube-*]\n", nil, [2]string{}, `wasmproxy.yaml: exempt-namespaces: "kube-*" is not the name of a namespace`},
		{"namespace of no name", "exempt-namespaces: [\"\"]\n", nil, [2]string{}, `wasmproxy.yaml: exempt-namespaces: "" is not the name of a namespace`},
		{"namespace in a variable", "", nil, [2]string{"WASMPROXY_EXEMPT_NAMESPACES", "a,,b"}, `environment variable WASMPROXY_EXEMPT_NAMESPACES: exempt-namespaces: "" is not the name of a namespace`},
		{"namespaces that are no texts", "exempt-namespaces: [kube-system, 1]\n", nil, [2]string{}, `wasmproxy.yaml: exempt-namespaces: [kube-system 1] is not a list of texts`},
		{"namespaces that are a switch", "exempt-namespaces: false\n", nil, [2]string{}, `wasmproxy.yaml: exempt-namespaces: false is not a list of texts`},
		{"level", "log-level: loud\n", nil, [2]string{}, `wasmproxy.yaml: log-level: "loud"`},
		{"level in a variable", "log-level: info\n", nil, [2]string{"WASMPROXY_LOG_LEVEL", "loud"}, `environment variable WASMPROXY_LOG_LEVEL: log-level: "loud"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.env[0] != "" {
				t.Setenv(tt.env[0], tt.env[1])
			}
			_, err := load(t, tt.file, tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v does not say %q", err, tt.want)
			}
		})
	}
}

// Of two settings that are wrong for one reason, the same is named each time.
func TestTheFirstWrongSettingIsNamed(t *testing.T) {
	const socket = "/run/wasmproxy/wasmproxy.sock"
	for want, args := range map[string][]string{
		"the socket of listen,": {"--status-socket=/run/wasmproxy/status.sock"},
		`backend: "` + socket:   {"--backend=" + socket, "--image-endpoint=" + socket},
		"and plugin-dir ":       {"--cache-dir=/etc"},
	} {
		for range 30 {
			if _, err := load(t, "", args...); err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("error %v does not say %q", err, want)
			}
		}
	}
}

// A variable that is no setting is ignored, and can be warned of by its name: a
// Service named wasmproxy makes several.
func TestUnknownVariables(t *testing.T) {
	t.Setenv("WASMPROXY_SERVICE_HOST", "10.0.0.1")
	t.Setenv("WASMPROXY_PORT", "tcp://10.0.0.1:80")
	t.Setenv("WASMPROXY_LOG_LEVEL", "warn")
	t.Setenv("WASMPROXY_CACHE", "/x")
	c, err := load(t, "")
	if err != nil || c.LogLevel != "warn" {
		t.Errorf("settings %+v, %v", c, err)
	}
	if got, want := config.UnknownVariables(), []string{"WASMPROXY_PORT", "WASMPROXY_SERVICE_HOST"}; !slices.Equal(got, want) {
		t.Errorf("unknown variables %v, want %v", got, want)
	}
}

// A config file that is none neither fills the memory nor is waited for.
func TestConfigFileIsRegularAndSmall(t *testing.T) {
	dir := t.TempDir()
	fifo, large := filepath.Join(dir, "fifo"), filepath.Join(dir, "large.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 5<<30); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/dev/zero": "is not a regular file", fifo: "is not a regular file", dir: "is not a regular file", large: "has 5368709120 bytes, more than the 1048576 that are allowed",
	} {
		if _, err := load(t, "", "--config", path); err == nil || !strings.Contains(err.Error(), "config file "+path+": "+want) {
			t.Errorf("--config %s: error %v does not say %q", path, err, want)
		}
	}
}

// The most that an error names is accepted, in the unit in which it names it.
func TestTheMostIsAccepted(t *testing.T) {
	c, err := load(t, "", "--audit-log-size=1048576Mi", "--guest-memory=67108864Mi")
	if err != nil || c.AuditBytes() != 1<<40 || c.GuestBytes() != 1<<46 {
		t.Errorf("%v: %d and %d bytes", err, c.AuditBytes(), c.GuestBytes())
	}
}
