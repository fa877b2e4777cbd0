package registry

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// readJSON reads a JSON file that registers a hook server or names a module. It does not if
// the file is gone by now, or says nothing; problem is then why, if that is wrong.
func (s source) readJSON(path string, f files) (d Description, registers bool, problem error) {
	b, err := f.text(s.trust, path)
	if vanished(path, err) {
		return d, false, nil
	}
	var from settings
	if err == nil {
		from, err = s.parse(b)
		from.note(b)
	}
	from.ID, from.File = id(path), path
	if from.Module != "" {
		if err == nil {
			err = errors.Join(f.trusted(path), from.checkModule(from.Module))
		}
		from.Hooks, _ = hookSet(from.hooks)
		from.Endpoint = ""
		switch {
		case err != nil:
			from.Disabled, from.Problem = false, &fileError{path, err}
		case !from.find(from.modulePath(), path, f.sum):
			from.Problem = &fileError{path, fmt.Errorf("wasm-module: there is no %s beside it", plugin.Name(from.Module))}
		}
		return from.Description, true, nil
	}
	from.HooksNamed = true
	from.Hooks, from.UnknownHooks = hookSet(from.hooks)
	if err == nil && from.Endpoint == "" {
		switch {
		case !s.koordinator:
			module := plugin.Name(stem(path) + ".wasm")
			return d, false, &aloneError{from.ID, &fileError{path, fmt.Errorf("describes no plugin: it has no remote-endpoint, no wasm-module and no %s beside it; remove the file, or put %s beside it", module, module)}}
		case len(from.hooks) == 0 && from.Policy != plugin.Fail:
			return d, false, nil // Koordinator ignores it, and it does no harm
		}
		err = errors.New("remote-endpoint: is missing")
	}
	for _, of := range slices.Concat(moduleKeys, []key{{name: shadowKey}}) {
		if err == nil && slices.Contains(from.keys, of.name) {
			err = fmt.Errorf("%s: is for modules, and this is a hook server", of.name)
		}
	}
	if err != nil {
		from.Problem = &fileError{path, err}
	}
	return from.Description, true, nil
}

// aloneError is what is wrong with a JSON file whose module is missing, or is another file's. It does no harm.
type aloneError struct {
	id string
	error
}

func (e *aloneError) Unwrap() error { return e.error }

// Alone reports whether a problem of Read is that a JSON file describes no plugin, since its module
// is missing or another file's, and the id that the plugin would have. The file has no effect.
func Alone(problem error) (id string, is bool) {
	var alone *aloneError
	if !errors.As(problem, &alone) {
		return "", false
	}
	return alone.id, true
}

// id is the plugin's id: the stem of its file's name, safe to print.
func id(path string) string { return plugin.Name(stem(path)) }

// stem is the base name without its extension; a name that is all extension stays.
func stem(path string) string {
	name := filepath.Base(path)
	if stem := strings.TrimSuffix(name, filepath.Ext(name)); stem != "" {
		return stem
	}
	return name
}
