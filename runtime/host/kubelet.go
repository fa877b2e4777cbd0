package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/config"
)

// DefaultKubeletConfig is where kubeadm writes kubelet's configuration.
const DefaultKubeletConfig = "/var/lib/kubelet/config.yaml"

// DefaultEndpoint is kubelet's own, where neither a flag nor a file has one.
const DefaultEndpoint = "unix:///run/containerd/containerd.sock"

// Files of kubelet beside its configuration. kubeadm writes the flags before 1.34, and the
// instance configuration since then: `kubeadm upgrade` copies its endpoint into config.yaml.
// The last ones hold flags that operators add. A flag wins over the configuration.
const instanceConfig = "/var/lib/kubelet/instance-config.yaml"

var flagFiles = []string{
	"/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet",
	"/etc/systemd/system/kubelet.service", "/etc/systemd/system/kubelet.service.d/*.conf",
}

// kubelet is what the host's files say about kubelet's endpoints.
type kubelet struct {
	texts           []text
	runtime, images string // as kubelet uses them; images is empty if it is the same
}

// readKubelet reads the files in the order in which kubelet takes them: the last one wins.
func (h *Host) readKubelet() (*kubelet, error) {
	k := new(kubelet)
	for _, path := range []string{instanceConfig, h.KubeletConfig} {
		if err := h.addText(k, path, true); err != nil {
			return nil, err
		}
	}
	for _, pattern := range flagFiles {
		paths, err := filepath.Glob(h.under(pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if err := h.addText(k, "/"+strings.TrimPrefix(strings.TrimPrefix(path, h.Root), "/"), false); err != nil {
				return nil, err
			}
		}
	}
	if len(k.texts) == 0 {
		return nil, fmt.Errorf("%w: there is neither %s nor %s; name it with --kubelet-config", errNoEndpoint, h.KubeletConfig, flagFiles[0])
	}
	k.runtime, k.images = k.last(runtimeKey), k.last(imageKey)
	if k.runtime == "" {
		k.runtime = DefaultEndpoint
	}
	if k.images == k.runtime {
		k.images = ""
	}
	return k, nil
}

func (h *Host) addText(k *kubelet, path string, yaml bool) error {
	content, err := os.ReadFile(h.under(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading kubelet's files: %w", err)
	}
	k.texts = append(k.texts, text{path, string(content), yaml})
	return nil
}

// last returns the value that kubelet uses, and "" if no file has one.
func (k *kubelet) last(of key) (value string) {
	for _, t := range k.texts {
		if all := t.values(of); len(all) > 0 && t.path != instanceConfig { // which kubelet itself does not read
			value = all[len(all)-1]
		}
	}
	return value
}

// pointAt returns the files in which the endpoints are others, with endpoint in their place.
func (k *kubelet) pointAt(endpoint string, config string) (changed []text, err error) {
	found := false
	other := func(value string) bool { return value != "" && !SameEndpoint(value, endpoint) }
	for _, t := range k.texts {
		found = found || len(t.values(runtimeKey)) > 0 && t.path != instanceConfig
		after := t.set(runtimeKey, endpoint, other).set(imageKey, endpoint, other)
		if after != t {
			changed = append(changed, after)
		}
		if err := after.check(t); err != nil {
			return nil, err
		}
	}
	if found {
		return changed, nil
	}
	for _, t := range k.texts {
		if t.path == config {
			after := t.write(runtimeKey, endpoint)
			return append(changed, after), after.check(t)
		}
	}
	return nil, fmt.Errorf("no file of kubelet has an endpoint, and there is no %s to add it to; name it with --kubelet-config", config)
}

// write gives a key of a YAML file its value, whether or not it has one.
func (t text) write(k key, value string) text {
	if len(t.find(k)) > 0 {
		return t.set(k, value, func(string) bool { return true })
	}
	return t.add(k, value)
}

// SameEndpoint reports whether two endpoints name one socket. /var/run is a link to /run.
func SameEndpoint(a, b string) bool {
	return plain(a) == plain(b)
}

func plain(endpoint string) string {
	path := filepath.Clean(strings.TrimPrefix(config.Path(endpoint), "unix:"))
	if rest, ok := strings.CutPrefix(path, "/var/run/"); ok {
		return "/run/" + rest
	}
	return path
}
