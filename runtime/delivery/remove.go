package delivery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// Remove removes the files of plugins, and the modules that they name unless another plugin names them. It refuses those
// that a delivery has brought, and then removes nothing, unless force is set: their owners' next deliveries bring them
// again. It returns the paths of what it has removed.
func (d Directory) Remove(ctx context.Context, ids []string, force bool) (removed []string, err error) {
	err = d.Edit(ctx, func() error {
		r, err := d.record()
		if err != nil {
			return err
		}
		for _, id := range ids {
			if has, ours := r.Plugins[id]; ours && !force {
				return fmt.Errorf("%s belongs to the owner %q: deliver that owner's plugins without it, or give --force to remove it until the next delivery",
					d.path(id+".json"), has.Owner)
			}
		}
		for _, id := range ids {
			files, err := d.remove(id)
			removed = append(removed, files...)
			if err != nil {
				return err
			}
			delete(r.Plugins, id)
		}
		if _, err := os.Lstat(d.path(ownDir)); errors.Is(err, fs.ErrNotExist) { // nothing was ever delivered
			return nil
		}
		err = d.collect(&r)
		return errors.Join(err, d.save(r))
	})
	return removed, err
}

// remove removes modules first: a module without its JSON file would be a plugin with other settings.
func (d Directory) remove(id string) (removed []string, err error) {
	for _, name := range []string{id + ".wasm", d.alone(id), id + ".json"} {
		if name == "" {
			continue
		}
		switch err := os.Remove(d.path(name)); {
		case err == nil:
			removed = append(removed, d.path(name))
		case !errors.Is(err, fs.ErrNotExist):
			return removed, err
		}
	}
	return removed, regular.SyncDir(string(d))
}

// alone is the module that the JSON file of a plugin names, from the directory; empty if it names none, if another file names
// it, too, as a plugin's or a shadow's, if one that cannot be read may name it, or if it has a JSON file of its own.
func (d Directory) alone(id string) string {
	found, _ := registry.ReadUntrusted(string(d)) // a description has the error about its own file
	i := slices.IndexFunc(found, func(one registry.Description) bool { return one.ID == plugin.Name(id) })
	if i < 0 || found[i].Module == "" {
		return ""
	}
	module := filepath.Clean(found[i].Module)
	if named, all := modules(found, plugin.Name(id)); named[module] || !all {
		return ""
	}
	own := strings.TrimSuffix(module, ".wasm") + ".json"
	if _, err := os.Lstat(d.path(own)); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return module
}

// modules are those that plugins and their shadows name, but for one plugin. It reports false if a file that cannot be read
// may name another one.
func modules(found []registry.Description, except string) (named map[string]bool, all bool) {
	named, all = map[string]bool{}, true
	for _, one := range found {
		if one.ID == except {
			continue
		}
		named[filepath.Clean(one.Module)] = true
		if one.Shadow != nil {
			named[filepath.Clean(one.Shadow.Module)] = true
		}
		all = all && (one.Problem == nil || one.Module != "")
	}
	return named, all
}
