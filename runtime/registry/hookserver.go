package registry

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// isPluginFile reports whether a file of the plugin directory may register a plugin.
func isPluginFile(name string) bool {
	return filepath.Ext(name) == ".json" && !strings.HasPrefix(name, ".")
}

// isHookFile is Koordinator's rule for hookserver.d: the name ends in the four letters json,
// with or without a dot.
func isHookFile(name string) bool { return strings.HasSuffix(name, "json") }

// readJSON reads a JSON file that registers a hook server or names a module. It does not if
// the file is gone by now, or says nothing; problem is then why, if that is wrong.
func (s source) readJSON(path string) (d Description, registers bool, problem error) {
	d = Description{ID: id(path), File: path}
	b, err := s.trust.readAll(path, maxJSON)
	if vanished(path, err) {
		return d, false, nil
	}
	var from settings
	if err == nil {
		from, err = s.parse(b)
	}
	d.take(from)
	d.Endpoint, d.HooksNamed = from.endpoint, true
	d.Hooks, d.UnknownHooks = hookSet(from.hooks)
	if err == nil {
		err = from.checkHookServer()
	}
	if err != nil {
		d.Problem = &fileError{path, err}
	}
	switch {
	case from.module != "":
		d.readNamed(from)
		return d, true, nil
	case err == nil && from.endpoint == "":
		problem = s.empty(&d, from)
		return d, d.Problem != nil, problem
	}
	d.Disabled = from.disabled
	return d, true, nil
}

// emptyPluginFile refuses a file that says nothing.
func emptyPluginFile(d *Description, _ settings) error {
	return &fileError{d.File, fmt.Errorf("describes no plugin: it has no remote-endpoint, no wasm-module and no %s beside it", plugin.Name(stem(d.File)+".wasm"))}
}

// emptyHookFile lets a file pass that says nothing: Koordinator does, and it does no harm.
func emptyHookFile(d *Description, s settings) error {
	if len(s.hooks) > 0 || s.policy == plugin.Fail {
		d.Problem = &fileError{d.File, errors.New("remote-endpoint: is missing")}
	}
	return nil
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
