package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/unitfile"
)

// DefaultKubeletConfig is where kubeadm writes kubelet's configuration.
const DefaultKubeletConfig = "/var/lib/kubelet/config.yaml"

// DefaultEndpoint is kubelet's own, where neither a flag nor a file has one.
const DefaultEndpoint = "unix:///run/containerd/containerd.sock"

// instanceConfig is what kubeadm writes since 1.34: `kubeadm upgrade` copies its endpoint into config.yaml. kubelet
// does not read it.
const instanceConfig = "/var/lib/kubelet/instance-config.yaml"

// flagFiles hold the flags of a kubelet that no known unit starts: those of kubeadm before 1.34, and of operators.
var flagFiles = []string{"/var/lib/kubelet/kubeadm-flags.env", "/etc/default/kubelet", "/etc/sysconfig/kubelet"}

const kubeletUnit = "kubelet.service"

// kubelet is what the host's files say about kubelet's endpoints.
type kubelet struct {
	texts   []text // configurations in the order in which kubelet takes them, then files with flags
	args    []unitfile.Value
	manager *manager // nil if its files may be changed
	config  string   // the configuration that it reads, whether or not there is one; "" if it reads none

	runtime, images string // as kubelet uses them; images is empty if it is the same
	named           bool   // a flag or a file has the runtime's
}

// reader reads files of the host, some of them as they are to be.
type reader struct {
	root   Root
	config string            // kubelet's configuration, unless a flag names another
	edited map[string]string // contents by paths
}

// largest is a limit for kubelet's files and its units.
const largest = 1 << 20

// text reads a file. It is no error if there is none.
func (r reader) text(path string, config bool) (t text, has bool, err error) {
	edited, has := r.edited[path]
	t = text{path: path, content: edited, yaml: config}
	if !has {
		content, err := regular.Read(r.root.Under(path), largest, nil)
		if errors.Is(err, fs.ErrNotExist) {
			return text{}, false, nil
		}
		if err != nil {
			return text{}, false, fmt.Errorf("reading kubelet's files: %s: %w", path, err)
		}
		t.content = string(content)
	}
	if config {
		_, err = t.decode()
	}
	return t, true, err
}

// readKubelet finds how kubelet is started, and reads the files that it and systemd read then.
func (h *Host) readKubelet() (*kubelet, error) { return h.reader(nil).kubelet() }

func (h *Host) reader(edited map[string]string) reader {
	return reader{h.Root, h.KubeletConfig, edited}
}

func (r reader) kubelet() (*kubelet, error) {
	k := &kubelet{config: r.config}
	s, err := r.service(kubeletUnit)
	if err != nil {
		return nil, err
	}
	byDefault := DefaultEndpoint
	isKubelets := func(w unitfile.Value) bool { return aFlag.MatchString(w.String()) } // also behind what starts it, such as a container
	switch k.manager = findManager(r.root, len(s.texts) > 0); {
	case k.manager != nil && k.manager.inUnit:
		byDefault, k.config = cmp.Or(k.manager.endpoint, byDefault), "" // unless a flag names one
		s, err = r.managed(k.manager)
	case len(s.args) > 0 && filepath.Base(s.args[0].String()) == "kubelet", slices.ContainsFunc(s.args, isKubelets):
		s.args = s.args[1:]
		k.config = ""
	default: // nothing tells which of the flags of these files are kubelet's
		units := s.texts
		s = service{}
		for _, path := range flagFiles {
			t, has, err := r.text(path, false)
			if err != nil {
				return nil, err
			}
			if has && !slices.ContainsFunc(units, func(u text) bool { return u.path == path }) {
				s.texts = append(s.texts, t)
			}
		}
		s.texts = append(s.texts, units...)
		for _, t := range s.texts {
			s.args = append(s.args, slices.Concat(t.words()...)...)
		}
	}
	if err != nil {
		return nil, err
	}
	k.args = s.args
	if err := errors.Join(checkArgs(k.args), r.configurations(k)); err != nil {
		return nil, err
	}
	if k.texts = append(k.texts, s.texts...); len(k.texts) == 0 && k.manager == nil {
		return nil, fmt.Errorf("%w: there is neither %s nor %s; name it with --kubelet-config, or the runtime with --backend", errNoEndpoint, r.config, flagFiles[0])
	}
	k.runtime, k.named = k.endpoint(runtimeKey)
	k.images, _ = k.endpoint(imageKey)
	k.runtime = cmp.Or(k.runtime, byDefault)
	if k.images == k.runtime {
		k.images = ""
	}
	return k, nil
}

// configurations reads what the flags name: --config, and over it --config-dir.
func (r reader) configurations(k *kubelet) error {
	for _, name := range []string{"config", "config-dir"} {
		if path, ok := lastFlag(k.args, name); ok && !filepath.IsAbs(path) {
			return fmt.Errorf("reading kubelet's flags: --%s=%s is not an absolute path", name, path)
		} else if ok && name == "config" {
			k.config = path
		}
	}
	paths := []string{instanceConfig}
	if k.config != "" {
		paths = append(paths, k.config)
	}
	dir, _ := lastFlag(k.args, "config-dir")
	if k.manager != nil {
		dir = cmp.Or(dir, k.manager.configDir)
	}
	if dir != "" { // the last file wins
		at := filepath.Join(r.root.Under(filepath.Dir(dir)), filepath.Base(dir)) // kubelet does not follow a link here
		_ = filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(path) == ".conf" {
				paths = append(paths, filepath.Join(dir, strings.TrimPrefix(path, at)))
			}
			return nil
		})
	}
	for _, path := range paths {
		t, has, err := r.text(path, true)
		if err != nil {
			return err
		}
		if has {
			k.texts = append(k.texts, t)
		}
	}
	return nil
}

// endpoint returns the value that kubelet uses: the last flag, or that of the last configuration that has the key. An
// empty one is kubelet's default.
func (k *kubelet) endpoint(of key) (value string, named bool) {
	if value, ok := lastFlag(k.args, of.flag); ok {
		return value, true
	}
	if t := k.lastWith(of); t != nil {
		value, _ = t.has(of)
	}
	return value, value != ""
}

// lastWith returns the configuration whose value of the key counts. kubelet itself does not read kubeadm's.
func (k *kubelet) lastWith(of key) (last *text) {
	for i, t := range k.texts {
		if _, has := t.has(of); has && t.yaml && t.path != instanceConfig {
			last = &k.texts[i]
		}
	}
	return last
}

// pointKubelet plans the proxy's endpoint for kubelet's files, or what the operator has to do instead.
func (p *installation) pointKubelet(k *kubelet) error {
	backend := p.host.Backend
	now, named := k.endpoint(runtimeKey)
	switch {
	case k.manager != nil && named && SameEndpoint(now, p.socket):
		units := kubeletUnit
		if k.manager.inUnit {
			units = k.manager.unitNames()
		}
		p.advice = fmt.Sprintf("they have the proxy's endpoint; kubelet takes it when you restart %s, unless it has started since", units)
		return nil
	case k.manager != nil && backend == "":
		return fmt.Errorf("kubelet's files are written by %s, so that to change them is in vain: first run wasmproxy host install --backend %s, which leaves them as they are; then %s", k.manager.name, k.runtime, k.manager.tell(p.socket))
	case k.manager != nil:
		p.advice = k.manager.tell(p.socket)
		return nil
	case !k.named && backend != "" && k.home() == (text{}):
		p.advice = fmt.Sprintf("no file of kubelet names an endpoint yet: give kubeadm criSocket: %s under nodeRegistration of its InitConfiguration and JoinConfiguration", p.socket)
		return nil
	}

	other := func(value string) bool { return value != "" && !SameEndpoint(value, p.socket) }
	images := cmp.Or(p.settings.ImageEndpoint, p.settings.Backend)
	if other(k.images) && !p.record.ours(k.images) && !SameEndpoint(k.images, images) {
		return fmt.Errorf("kubelet's image service is %s, and the proxy would ask %s for images: "+
			"set image-endpoint in %s to the image service that kubelet is to have", k.images, images, SettingsFile)
	}
	edited := map[string]string{}
	var paths []string // that have flags or keys of kubelet
	for _, t := range k.texts {
		if !t.yaml && !k.flagged(t.path) {
			continue
		}
		paths = append(paths, t.path)
		after := t.set(runtimeKey, p.socket, other).set(imageKey, p.socket, other)
		switch {
		case k.named || t != k.home():
		case len(after.find(runtimeKey)) > 0: // and is empty
			after = after.set(runtimeKey, p.socket, func(string) bool { return true })
		default:
			after = after.add(runtimeKey, p.socket)
		}
		if err := after.check(t); err != nil {
			return err
		}
		if after == t {
			continue
		}
		edited[t.path] = after.content
		ours := slices.ContainsFunc(append(t.values(runtimeKey), t.values(imageKey)...), p.record.ours)
		p.kubelet = append(p.kubelet, change{
			path: t.path, before: []byte(t.content), after: []byte(after.content), kubelet: true, ours: ours,
		})
	}
	if !k.named && k.home() == (text{}) {
		return fmt.Errorf("no flag and no file of kubelet has an endpoint, and there is no configuration %s to add it to; name it with --kubelet-config, or the runtime with --backend", k.config)
	}

	// They are read again, as kubelet and systemd read them: kubelet must have the endpoint, and all else as before.
	after, err := p.host.reader(edited).kubelet()
	if err != nil {
		return fmt.Errorf("changing kubelet's endpoint: %w", err)
	}
	images = cmp.Or(after.images, p.socket)
	if !SameEndpoint(after.runtime, p.socket) || !SameEndpoint(images, p.socket) || !slices.Equal(k.others(), after.others()) {
		return fmt.Errorf("changing kubelet's endpoint in %s: it is written in a form that this command cannot change; change it to %s by hand", strings.Join(paths, " and "), p.socket)
	}
	return nil
}

// home returns the configuration that gets an endpoint where kubelet has its default.
func (k *kubelet) home() text {
	if t := k.lastWith(runtimeKey); t != nil {
		return *t
	}
	if i := slices.IndexFunc(k.texts, func(t text) bool { return t.yaml && t.path == k.config }); i >= 0 {
		return k.texts[i]
	}
	return text{}
}

// others returns the command line's flags, with the endpoints left out of those that have them.
func (k *kubelet) others() (all []string) {
	for _, f := range flagsIn(k.args) {
		if f.name == runtimeKey.flag || f.name == imageKey.flag {
			f.value = nil
		}
		all = append(all, f.name+"="+f.value.String())
	}
	return all
}

// SameEndpoint reports whether two endpoints name one socket.
func SameEndpoint(a, b string) bool {
	return plain(a) == plain(b)
}

func plain(endpoint string) string {
	return config.Socket(strings.TrimPrefix(config.Path(endpoint), "unix:"))
}
