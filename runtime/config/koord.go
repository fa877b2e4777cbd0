package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

// Flags of koord-runtime-proxy that are no setting of their own.
const (
	koordMode      = "backend-runtime-mode"
	koordSkipKey   = "runtime-hook-server-key"
	koordSkipValue = "runtime-hook-server-val"
)

// koordNames are the flags of koord-runtime-proxy that are settings under
// another name. The last it no longer has, but its documents still pass it.
var koordNames = map[string]string{
	"koord-runtimeproxy-endpoint":     "listen",
	"remote-runtime-service-endpoint": "backend",
	"remote-image-service-endpoint":   "image-endpoint",
}

// ErrBackendMode is the error of a backend that there is no such way to talk to.
var ErrBackendMode = errors.New("unknown runtime engine backend")

// KoordFlags adds the flags of koord-runtime-proxy v1.8.0 to fs, with its
// defaults, and those settings that it has no flag for.
func KoordFlags(fs *pflag.FlagSet) {
	fs.String("koord-runtimeproxy-endpoint", "/var/run/koord-runtimeproxy/runtimeproxy.sock", "socket on which kubelet finds the proxy")
	fs.String("remote-runtime-service-endpoint", "/var/run/containerd/containerd.sock", "socket of the container runtime")
	fs.String("remote-image-service-endpoint", "", "socket of the image service, if it is not the runtime's")
	fs.String(koordMode, "Containerd", "Containerd, which stands for whatever speaks CRI, or Docker")
	fs.String(koordSkipKey, "runtimeproxy.koordinator.sh/skip-hookserver", "key of the label of pods for which hook servers are not called")
	fs.String(koordSkipValue, "true", "value of that label")
	fs.String(FileFlag, "", "YAML file with settings by the names that serve has for them")
	renamed := map[string]bool{"skip-label": true}
	for _, key := range koordNames {
		renamed[key] = true
	}
	for _, s := range settings() {
		if !renamed[s.key] {
			s.flag(fs)
		}
	}
}

// LoadKoord reads the settings as LoadFrom does. fs has been parsed, and KoordFlags
// was called on it. The error is an ErrBackendMode if the flags ask for another mode
// than those two.
func LoadKoord(fs *pflag.FlagSet, file File) (*Config, error) {
	named := fs.Lookup(koordMode).Value.String()
	mode, ok := map[string]string{"Containerd": ModeCRI, "Docker": ModeDocker}[named]
	if !ok {
		return nil, fmt.Errorf("--%s=%s: %w; there are Containerd and Docker", koordMode, named, ErrBackendMode)
	}
	defaults := map[string]any{"mode": mode}
	for flag, key := range koordNames {
		defaults[key] = fs.Lookup(flag).DefValue
	}
	if fs.Changed(koordMode) { // it wins over the file, as each flag does
		if err := fs.Set("mode", mode); err != nil {
			return nil, err
		}
	}
	c, err := load(fs, file, defaults, os.Environ)
	if err != nil {
		return nil, err
	}
	if fs.Changed(koordSkipKey) || fs.Changed(koordSkipValue) {
		c.SkipLabel = fs.Lookup(koordSkipKey).Value.String() + "=" + fs.Lookup(koordSkipValue).Value.String()
	}
	if Socket(c.ImageEndpoint) == Socket(c.Backend) {
		c.ImageEndpoint = "" // as the documents have it: the same socket twice
	}
	return c, c.Validate()
}
