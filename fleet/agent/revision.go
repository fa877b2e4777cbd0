package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/fleet/plan"
	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// ownDir is what the agent keeps in the plugin directory: the proxy reads nothing there that begins with a dot.
const ownDir = ".fleet"

// specFile has the content of a revision. Its directory is complete: it was renamed into place.
const specFile = "revision.spec"

// errRefused says that a revision is of no use on this node, and that another try would bring the same.
var errRefused = errors.New("refused")

// errNotSelected says that a revision is not for this node, as long as the node's labels are what they are.
var errNotSelected = errors.New("its selector does not select the node")

// revisions are those on disk, which were fetched, checked and tried.
type revisions struct {
	dir     string                                                 // absolute; the agent's own
	content func(ctx context.Context, name string) ([]byte, error) // of a ControllerRevision
	pull    func(ctx context.Context, artifact string) ([]byte, error)
	try     func(ctx context.Context, dir, plugin string) error // errRefused if the proxy would not load it
	labels  func() map[string]string                            // of the node
	guard
}

func (r revisions) path(name ...string) string {
	return filepath.Join(append([]string{r.dir}, name...)...)
}

// read returns the content of a revision on disk; fs.ErrNotExist if it is not there.
func (r revisions) read(name string) (*v1alpha1.RevisionSpec, error) {
	text, err := os.ReadFile(r.path(name, specFile))
	if err != nil {
		return nil, err
	}
	return parse(name, text)
}

// has reports whether a revision is on disk.
func (r revisions) has(name string) bool {
	_, err := r.read(name)
	return err == nil
}

// ready reports whether a revision is on disk, and nothing has to be verified.
func (r revisions) ready(name string) bool {
	is, _ := r.now()
	return is == v1alpha1.TrustNone && r.has(name)
}

// parse reads the content of a revision, whose name must be that of its content.
func parse(name string, text []byte) (*v1alpha1.RevisionSpec, error) {
	spec := new(v1alpha1.RevisionSpec)
	if err := json.Unmarshal(text, spec); err != nil {
		return nil, fmt.Errorf("reading the revision %s: %w: %w", name, errRefused, err)
	}
	has, err := v1alpha1.RevisionName(pluginOf(name), *spec)
	if err == nil && has != name {
		err = fmt.Errorf("reading the revision %s: %w: its content is that of %s", name, errRefused, has)
	}
	return spec, err
}

// pluginOf is the plugin of a revision's name.
func pluginOf(revision string) string {
	i := strings.LastIndexByte(revision, '-')
	return revision[:max(i, 0)]
}

// loaded is a revision on disk, without the bytes of its module.
type loaded struct {
	spec     *v1alpha1.RevisionSpec
	plugin   delivery.Plugin // whose Module is empty
	disabled []byte          // the plugin's JSON file that switches it off
}

func (r revisions) load(name string) (has loaded, err error) {
	if has.spec, err = r.read(name); err != nil {
		return has, err
	}
	all, err := delivery.Read(r.path(name))
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d plugins are in %s, not one", len(all), r.path(name))
	}
	if err != nil {
		return has, err
	}
	has.plugin = all[0]
	has.plugin.Module = []byte{}
	has.disabled, err = delivery.SetKey(has.plugin.Text, "enabled", false)
	return has, err
}

// module reads the module of a revision on disk. One that is not what was fetched is an error.
func (r revisions) module(name string) ([]byte, error) {
	all, err := delivery.Read(r.path(name))
	if err != nil {
		return nil, err
	}
	return all[0].Module, nil
}

// fetch brings a revision to the disk, if it is for this node and let in, and tries it. If it is there it is only verified, and that fails
// as long as it is not signed: somebody may still sign it. A process that is killed leaves nothing under the revision's name.
func (r revisions) fetch(ctx context.Context, name string) error {
	spec, err := r.read(name)
	switch {
	case err == nil:
		return r.letIn(ctx, spec.Artifact, r.path(name))
	case !errors.Is(err, errRefused) && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.RemoveAll(r.path(name)); err != nil { // it has changed on the disk, or was removed by half
		return err
	}
	text, err := r.content(ctx, name)
	if err != nil {
		return fmt.Errorf("reading the revision %s: %w", name, err)
	}
	if spec, err = parse(name, text); err != nil {
		return err
	}
	if selects, err := plan.Selects(spec.NodeSelector, r.labels()); err != nil || !selects {
		return errors.Join(err, errNotSelected)
	}
	stage, err := os.MkdirTemp(r.dir, "next-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stage)
	// Before a byte of the artifact is read: what is signed is its digest.
	if err := r.letIn(ctx, spec.Artifact, stage); err != nil {
		return refusal(err)
	}
	module, err := r.pull(ctx, spec.Artifact)
	if err != nil {
		return refusal(err)
	}
	settings, err := settingsJSON(spec.Settings, module)
	if err != nil {
		return err
	}
	plugin := pluginOf(name)
	err = errors.Join(
		regular.Replace(filepath.Join(stage, plugin+".wasm"), module, 0o644),
		regular.Replace(filepath.Join(stage, plugin+".json"), settings, 0o644),
		regular.Replace(filepath.Join(stage, specFile), text, 0o644),
	)
	if err != nil {
		return err
	}
	if err := r.try(ctx, stage, plugin); err != nil {
		return err
	}
	return errors.Join(os.Rename(stage, r.path(name)), regular.SyncDir(r.dir))
}

// settingsJSON is the plugin's JSON file. It has the module's digest, so that a file that changes on disk is found.
func settingsJSON(s *v1alpha1.Settings, module []byte) ([]byte, error) {
	if s == nil {
		s = new(v1alpha1.Settings)
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return delivery.SetKey(append(text, '\n'), "sha256", sha256Hex(module))
}

// unfinished reports whether a directory is that of a fetch that is under way, or of one that was killed.
func unfinished(name string) bool {
	return strings.HasPrefix(name, "next-") || strings.HasPrefix(name, "try-")
}

// tidy removes what killed fetches have left.
func (r revisions) tidy() error { return r.remove(unfinished) }

// remove removes some directories.
func (r revisions) remove(which func(name string) bool) error {
	entries, err := os.ReadDir(r.dir)
	errs := []error{err}
	for _, e := range entries {
		if e.IsDir() && which(e.Name()) {
			errs = append(errs, os.RemoveAll(r.path(e.Name())))
		}
	}
	return errors.Join(errs...)
}
