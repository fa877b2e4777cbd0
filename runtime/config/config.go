// Package config has the settings that an operator writes: one plain struct, filled from
// defaults, a YAML file, WASMPROXY_ environment variables and flags, each
// winning over those before it.
//
// An error names the key and what is wrong with its value. The package does not look at
// the files that the settings name: whoever opens them does.
//
// To add a setting: a field here with its key and usage, its check in Validate
// if any value can be wrong, and its row in docs/configuration.md.
package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Config is immutable once Load has returned it.
type Config struct {
	Listen        string        `koanf:"listen" default:"unix:///run/wasmproxy/wasmproxy.sock" usage:"socket on which kubelet finds the proxy"`
	Backend       string        `koanf:"backend" default:"unix:///run/containerd/containerd.sock" usage:"socket of the container runtime"`
	Mode          string        `koanf:"mode" default:"cri" usage:"cri, or docker: the API that callers and the container runtime speak"`
	Containers    string        `koanf:"docker-containers" default:"kubernetes" usage:"containers that plugins see in mode docker: kubernetes or all"`
	ImageEndpoint string        `koanf:"image-endpoint" usage:"socket of the image service, if it is not the backend's"`
	PluginDir     string        `koanf:"plugin-dir" default:"/etc/wasmproxy/plugins.d" usage:"directory of .wasm plugins"`
	HookDir       string        `koanf:"hook-dir" default:"/etc/runtime/hookserver.d" usage:"directory of JSON files that register hook servers; empty: there are none"`
	CacheDir      string        `koanf:"cache-dir" default:"/var/cache/wasmproxy" usage:"directory for compiled plugins, of the proxy's user alone; empty: plugins are compiled in the proxy's own process"`
	StateDir      string        `koanf:"state-dir" default:"/run/wasmproxy/state" usage:"directory for the values that plugins want and keep, of the proxy's user alone; empty: a restart of the proxy loses them"`
	DataDir       string        `koanf:"data-dir" default:"/var/lib/wasmproxy" usage:"directory for what outlasts a reboot, of the proxy's user alone: the last good plugins and settings; empty: nothing is kept"`
	AdminSocket   string        `koanf:"admin-socket" default:"/run/wasmproxy/admin.sock" usage:"unix socket for commands such as explain, of the proxy's user alone; empty: there is none"`
	StatusSocket  string        `koanf:"status-socket" default:"/run/wasmproxy/status/status.sock" usage:"unix socket for status, plugins, metrics and health, of the proxy's user and group, which changes nothing; empty: there is none"`
	MetricsListen string        `koanf:"metrics-listen" usage:"TCP address, HOST:PORT, for metrics and health; empty: they are on the two unix sockets alone"`
	BypassFile    string        `koanf:"bypass-file" default:"/etc/wasmproxy/bypass" usage:"file that takes all plugins out of the way as long as it exists; empty: there is none"`
	NodeFeatures  string        `koanf:"node-features-file" usage:"file of labels for Node Feature Discovery: runtime, its handlers, cgroups and active plugins; empty: there is none"`
	AuditLog      string        `koanf:"audit-log" usage:"file, or journald, for a line about each change and refusal of plugins; empty: there is none"`
	AuditLogSize  string        `koanf:"audit-log-size" default:"100Mi" usage:"size at which the file of audit-log is renamed and another one begins, in Mi or Gi"`
	AuditLogCount int64         `koanf:"audit-log-count" default:"5" usage:"renamed files of audit-log that are kept"`
	GuestMemory   string        `koanf:"guest-memory" default:"256Mi" usage:"memory of all instances of all .wasm plugins together, in Mi or Gi"`
	MaxFuel       int64         `koanf:"max-plugin-fuel" default:"100000000" usage:"most fuel of one hook that a plugin's manifest may ask for"`
	MaxHostCalls  int64         `koanf:"max-plugin-host-calls" default:"20000" usage:"most host calls of one hook that a plugin's manifest may ask for"`
	MaxMemory     string        `koanf:"max-plugin-memory" default:"64Mi" usage:"most memory of one instance that a plugin's manifest may ask for, in Mi or Gi"`
	MaxTimeout    time.Duration `koanf:"max-plugin-timeout" default:"1s" usage:"most time of one hook that a plugin's manifest may ask for"`
	CgroupRoot    string        `koanf:"cgroup-root" default:"/sys/fs/cgroup" usage:"mount of the cgroup hierarchy; empty: no cgroup file is written"`
	CgroupMode    string        `koanf:"cgroup-mode" default:"auto" usage:"version of the cgroup hierarchy: auto, v1 or v2"`
	DrainTimeout  time.Duration `koanf:"drain-timeout" default:"3s" usage:"how long calls in flight may take to finish at a stop or restart"`
	Exempt        List          `koanf:"exempt-namespaces" default:"kube-system,wasmproxy" usage:"namespaces whose pods no plugin can keep from running, separated by commas; empty: none"`
	SkipLabel     string        `koanf:"skip-label" default:"runtimeproxy.koordinator.sh/skip-hookserver=true" usage:"label, KEY=VALUE, of pods for which hook servers are not called; empty: none"`
	KoordCompat   bool          `koanf:"koord-compat" usage:"treat hook servers as koord-runtime-proxy did where the proxy deliberately does not; see docs/koordinator.md"`
	LogFormat     string        `koanf:"log-format" default:"auto" usage:"auto (text on a terminal, else json), text or json"`
	LogLevel      string        `koanf:"log-level" default:"info" usage:"debug, info, warn or error"`
}

// List is a setting of several texts. As one text it has commas between them.
type List []string

// UnmarshalText implements encoding.TextUnmarshaler. The empty text is an empty list.
func (l *List) UnmarshalText(text []byte) error {
	*l = nil
	for one := range strings.SplitSeq(string(text), ",") {
		if one = strings.TrimSpace(one); one != "" || len(text) > 0 {
			*l = append(*l, one)
		}
	}
	return nil
}

// Validate says everything that is wrong with the settings, each with its key.
func (c *Config) Validate() error {
	return errors.Join(
		endpoint("listen", c.Listen),
		endpoint("backend", c.Backend),
		oneOf("mode", c.Mode, ModeCRI, ModeDocker),
		c.backendOfMode(),
		oneOf("docker-containers", c.Containers, "kubernetes", allContainers),
		optional(endpoint, "image-endpoint", c.ImageEndpoint),
		directory("plugin-dir", c.PluginDir),
		optional(directory, "hook-dir", c.HookDir),
		optional(directory, "cache-dir", c.CacheDir),
		optional(directory, "state-dir", c.StateDir),
		optional(directory, "data-dir", c.DataDir),
		optional(endpoint, "admin-socket", c.AdminSocket),
		optional(endpoint, "status-socket", c.StatusSocket),
		optional(hostPort, "metrics-listen", c.MetricsListen),
		optional(directory, "bypass-file", c.BypassFile),
		c.cacheApart(),
		optional(directory, "node-features-file", c.NodeFeatures),
		optional(auditLog, "audit-log", c.AuditLog),
		size("audit-log-size", c.AuditLogSize, 1<<20<<20),
		between("audit-log-count", c.AuditLogCount, 1000),
		size("guest-memory", c.GuestMemory, 1<<16<<30),
		between("max-plugin-fuel", c.MaxFuel, plugin.MaxFuel),
		between("max-plugin-host-calls", c.MaxHostCalls, plugin.MaxHostCalls),
		size("max-plugin-memory", c.MaxMemory, plugin.MaxMemory),
		positive("max-plugin-timeout", c.MaxTimeout),
		between("max-plugin-timeout", c.MaxTimeout, plugin.MaxTimeout),
		optional(directory, "cgroup-root", c.CgroupRoot),
		oneOf("cgroup-mode", c.CgroupMode, "auto", "v1", "v2"),
		oneOf("log-format", c.LogFormat, "auto", "text", "json"),
		oneOf("log-level", c.LogLevel, "debug", "info", "warn", "error"),
		positive("drain-timeout", c.DrainTimeout),
		namespaces("exempt-namespaces", c.Exempt),
		optional(label, "skip-label", c.SkipLabel),
		c.distinct(),
	)
}

// The modes.
const (
	ModeCRI    = "cri"
	ModeDocker = "docker"
)

const allContainers = "all"

// AllContainers reports whether plugins see the containers of Docker that Kubernetes did not make.
func (c *Config) AllContainers() bool { return c.Containers == allContainers }

// backendOfMode refuses the socket of a runtime that kubelet calls by CRI in the place of Docker's. The default is one.
func (c *Config) backendOfMode() error {
	if c.Mode != ModeDocker {
		return nil
	}
	for _, r := range dialect.Runtimes {
		if r.Socket != "" && filepath.Base(Path(c.Backend)) == filepath.Base(r.Socket) {
			return wrong("backend", "%q is the socket of %s, and mode is docker: name Docker's, such as unix:///run/docker.sock", c.Backend, r.Title)
		}
	}
	if c.ImageEndpoint != "" && Socket(c.ImageEndpoint) != Socket(c.Backend) {
		return wrong("image-endpoint", "%q: in mode docker there is no service of images of its own; leave it empty", c.ImageEndpoint)
	}
	return nil
}

// Level is LogLevel as slog has it.
func (c *Config) Level() slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return slog.LevelInfo
	}
	return l
}

// GuestBytes is GuestMemory in bytes; 0 if it is not a size.
func (c *Config) GuestBytes() int64 { return bytesOf(c.GuestMemory) }

// AuditBytes is AuditLogSize in bytes; 0 if it is not a size.
func (c *Config) AuditBytes() int64 { return bytesOf(c.AuditLogSize) }

// MaxLimits are the most that a plugin's manifest may ask for, unless the plugin's JSON says
// otherwise.
func (c *Config) MaxLimits() abi.Limits {
	return abi.Limits{
		Fuel: c.MaxFuel, Memory: bytesOf(c.MaxMemory), TimeMS: c.MaxTimeout.Milliseconds(), HostCalls: c.MaxHostCalls, TickHostCalls: c.MaxHostCalls,
		TickFuel: c.MaxFuel, TickTimeMS: c.MaxTimeout.Milliseconds(),
	}
}

// bytesOf returns a size in bytes; 0 if it is not a size.
func bytesOf(text string) int64 {
	digits, unit := strings.TrimSuffix(text, "Mi"), int64(1<<20)
	if number, giga := strings.CutSuffix(text, "Gi"); giga {
		digits, unit = number, 1<<30
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || digits == text {
		return 0
	}
	return int64(n) * unit
}

// Path returns the file of an endpoint: what follows unix://.
func Path(endpoint string) string { return strings.TrimPrefix(endpoint, "unix://") }

// Socket is Path in one spelling. /var/run is a link to /run.
func Socket(endpoint string) string {
	path := filepath.Clean(Path(endpoint))
	if rest, is := strings.CutPrefix(path, "/var/run/"); is {
		return "/run/" + rest
	}
	return path
}

// distinct refuses a proxy that would call itself, and two listeners on one socket.
func (c *Config) distinct() error {
	if c.AdminSocket != "" && Socket(c.AdminSocket) == Socket(c.Listen) {
		return wrong("admin-socket", "%q is the socket of listen", c.AdminSocket)
	}
	for _, of := range [][2]string{{"listen", c.Listen}, {"admin-socket", c.AdminSocket}} {
		key, value := of[0], of[1]
		if c.StatusSocket != "" && value != "" && within(Socket(value), filepath.Dir(Socket(c.StatusSocket))) {
			return wrong("status-socket", "%q: its directory must not hold the socket of %s, since pods may mount it", c.StatusSocket, key)
		}
	}
	for _, of := range [][2]string{{"backend", c.Backend}, {"image-endpoint", c.ImageEndpoint}} {
		key, value := of[0], of[1]
		if value != "" && Socket(value) == Socket(c.Listen) {
			return wrong(key, "%q is the proxy's own socket", value)
		}
	}
	return nil
}

// cacheApart refuses a cache among the files of plugins: its files are trusted more than
// those.
func (c *Config) cacheApart() error {
	for _, of := range [][2]string{{"plugin-dir", c.PluginDir}, {"hook-dir", c.HookDir}} {
		key, dir := of[0], of[1]
		if c.CacheDir != "" && (within(c.CacheDir, dir) || within(dir, c.CacheDir)) {
			return wrong("cache-dir", "%q and %s %q: neither may lie in the other", c.CacheDir, key, dir)
		}
	}
	return nil
}

func size(key, value string, most int64) error {
	switch n := bytesOf(value); {
	case n == 0:
		return wrong(key, "%q is not a size such as 256Mi or 1Gi", value)
	case n > most:
		return wrong(key, "%q is more than %dMi", value, most>>20)
	}
	return nil
}

func between[N int64 | time.Duration](key string, value, most N) error {
	if value < 1 || value > most {
		return wrong(key, "%v is not between 1 and %v", value, most)
	}
	return nil
}

func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func endpoint(key, value string) error {
	if !filepath.IsAbs(Path(value)) {
		return wrong(key, "%q is not unix:// and an absolute path", value)
	}
	return nil
}

func hostPort(key, value string) error {
	_, port, err := net.SplitHostPort(value)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 {
		return wrong(key, "%q is not an address such as 127.0.0.1:9750 or :9750", value)
	}
	return nil
}

func label(key, value string) error {
	if name, _, ok := strings.Cut(value, "="); !ok || name == "" {
		return wrong(key, "%q is not a label such as example.com/skip=true", value)
	}
	return nil
}

func namespaces(key string, values []string) error {
	for _, name := range values {
		if reasons := content.IsDNS1123Label(name); len(reasons) > 0 {
			return wrong(key, "%q is not the name of a namespace, such as kube-system: %s", name, reasons[0])
		}
	}
	return nil
}

func auditLog(key, value string) error {
	if value != "journald" && !filepath.IsAbs(value) {
		return wrong(key, "%q is neither journald nor an absolute path", value)
	}
	return nil
}

func directory(key, value string) error {
	if !filepath.IsAbs(value) {
		return wrong(key, "%q is not an absolute path", value)
	}
	return nil
}

func optional(check func(key, value string) error, key, value string) error {
	if value == "" {
		return nil
	}
	return check(key, value)
}

func oneOf(key, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return wrong(key, "%q is not one of %s", value, strings.Join(allowed, ", "))
}

func positive(key string, value time.Duration) error {
	if value <= 0 {
		return wrong(key, "%v is not greater than 0", value)
	}
	return nil
}

// wrongError is what is wrong with the value of one setting.
type wrongError struct {
	key string
	err error
}

func (e *wrongError) Error() string { return e.key + ": " + e.err.Error() }
func (e *wrongError) Unwrap() error { return e.err }

func wrong(key, format string, args ...any) error {
	return &wrongError{key, fmt.Errorf(format, args...)}
}
