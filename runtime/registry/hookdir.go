package registry

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// readHookDir reads hookserver.d: every file whose name ends in the four letters
// json, dot or not, is Koordinator's rule. A file that says nothing does no harm.
// Modules are plugins here too, which Koordinator passes over.
func readHookDir(dir string, names []string) (found []Description, problems []error) {
	for _, name := range names {
		if !strings.HasSuffix(name, "json") || moduleBeside(name, names) {
			continue
		}
		path := filepath.Join(dir, name)
		d, s, ok := readHookServer(path, hookFiles, parseHookserver)
		if ok && s.module != "" {
			ok = d.readNamed(s)
		} else if d.Problem == nil && s.endpoint == "" && (len(s.hooks) > 0 || s.policy == plugin.Fail) {
			d.Problem = &fileError{path, errors.New("remote-endpoint: is missing")}
		}
		if ok && (d.Problem != nil || s.endpoint != "" || s.module != "") {
			found = append(found, d)
		}
	}
	return append(found, readModules(dir, names)...), nil
}

// readHookServer reads a JSON file of a hook server; ok is false if it is gone
// by now.
func readHookServer(path string, t trust, parse func([]byte) (settings, error)) (d Description, s settings, ok bool) {
	d = Description{ID: id(path), File: path}
	b, err := t.readAll(path, maxJSON)
	if vanished(path, err) {
		return d, s, false
	}
	if err == nil {
		s, err = parse(b)
	}
	d.take(s)
	d.Endpoint, d.HooksNamed = s.endpoint, true
	d.Hooks, d.UnknownHooks = hookSet(s.hooks)
	if err == nil {
		err = s.checkHookServer()
	}
	if err != nil {
		d.Problem = &fileError{path, err}
	}
	return d, s, true
}

// take copies what means the same for every kind of plugin.
func (d *Description) take(s settings) {
	d.Policy, d.Timeout, d.Config, d.Interpret = s.policy, s.timeout, s.config, s.engine == engineInterpreter
	d.Match, d.Order = s.match, s.order
	d.takeAllowance(s)
}

// checkHookServer refuses settings that mean nothing for a hook server.
func (s settings) checkHookServer() error {
	switch {
	case s.endpoint == "" || s.module != "":
		return nil
	case s.config != nil:
		return errors.New("config: is for modules, and this is a hook server")
	case s.sha256 != "":
		return errors.New("sha256: is for modules, and this is a hook server")
	case s.engine != "":
		return errors.New("engine: is for modules, and this is a hook server")
	}
	return s.allowance.check()
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
