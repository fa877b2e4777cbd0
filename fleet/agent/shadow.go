package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
	"github.com/wasmproxy/wasmproxy/runtime/delivery"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// shadowKeys are the settings that a shadow may have of its own. All others of the stable revision hold for both.
var shadowKeys = []string{"grant", "limits", "timeout", "tick-timeout", "tick-period", "state", "config", "engine", "sha256"}

// beside returns the JSON file of a plugin with a revision as its shadow, whose module it brings to the disk. If the revision cannot be
// fetched now the file is as it was, and the report says why.
func (a *Agent) beside(
	ctx context.Context, text []byte, revision string, r *v1alpha1.PluginReport,
) (with []byte, digest string, err error) {
	done, err := a.fetcher.want(ctx, revision, 0)
	if errors.Is(err, errNotSelected) {
		r.Shadow = nil
		return text, "", nil
	}
	if err != nil {
		r.Shadow.Message = cut(err.Error())
	}
	if done && err != nil {
		r.Shadow.Phase = v1alpha1.Failing
	}
	if err != nil || !done && !a.revisions.has(revision) {
		return text, "", nil
	}
	of, err := a.load(revision)
	if err != nil {
		return nil, "", err
	}
	digest = of.plugin.Digest
	if !done && a.state[r.Name].Shadow != digest { // else it is verified again, and stays meanwhile
		return text, "", nil
	}
	named := shadowModule(digest)
	if err := a.bring(revision, filepath.Join(a.PluginDir, named)); err != nil {
		return nil, "", err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(of.plugin.Text, &all); err != nil {
		return nil, "", err
	}
	shadow := map[string]any{"wasm-module": named}
	for key, value := range all {
		if slices.Contains(shadowKeys, key) {
			shadow[key] = value
		}
	}
	with, err = delivery.SetKey(text, "shadow", shadow)
	return with, digest, err
}

// shadowModule is where the module of a shadow lies, from the plugin directory. No delivery has this name: it would keep what it has not
// written itself.
func shadowModule(digest string) string {
	return filepath.Join(registry.Modules, "shadow-"+digest+".wasm")
}

// bring writes the module of a revision, if it is not there.
func (a *Agent) bring(revision, path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	module, err := a.revisions.module(revision)
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return regular.Replace(path, module, 0o644)
}

// dropModule removes the module of a shadow that has ended, unless a plugin's JSON file names it.
func (a *Agent) dropModule(digest string) error {
	files, err := fs.Glob(os.DirFS(a.PluginDir), "*.json")
	if err != nil {
		return err
	}
	for _, file := range files {
		if text, err := os.ReadFile(filepath.Join(a.PluginDir, file)); err != nil || bytes.Contains(text, []byte(shadowModule(digest))) {
			return err
		}
	}
	err = os.Remove(filepath.Join(a.PluginDir, shadowModule(digest)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// The share of calls in which a shadow may fail, and of how many calls it is a share at least: as of a version on probation.
const (
	mostFailures = 0.05
	leastCalls   = 20
)

// judgeShadow says in a report what the proxy makes of the shadow of a plugin.
func judgeShadow(all []status.Plugin, id, digest string, r *v1alpha1.ShadowReport) {
	i := slices.IndexFunc(all, func(p status.Plugin) bool { return p.ID == id })
	r.Phase, r.Message = v1alpha1.Waiting, "the proxy has not loaded it yet"
	if i < 0 {
		return
	}
	s := all[i].Shadow
	if s == nil || s.Digest != digest {
		return
	}
	failed, calls := s.Outcomes["failed"], s.Outcomes["same"]+s.Outcomes["different"]+s.Outcomes["refused"]+s.Outcomes["failed"]
	r.Differences = int64(s.Outcomes["different"] + s.Outcomes["refused"])
	switch {
	case s.State == "failed":
		r.Phase, r.Message = v1alpha1.Failing, cut(s.Reason)
	case s.Breaker == "open":
		r.Phase, r.Message = v1alpha1.Failing, "its circuit breaker opened"
	case calls >= leastCalls && float64(failed) > mostFailures*float64(calls):
		r.Phase, r.Message = v1alpha1.Failing, fmt.Sprintf("%d of %d calls failed", failed, calls)
	case s.State == "active":
		r.Phase, r.Message = v1alpha1.Healthy, ""
	}
}
