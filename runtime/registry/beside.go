package registry

import (
	"os"
	"path/filepath"
	"strings"
)

// Beside returns what the JSON file beside a module says of it, X.json of X.wasm: the
// zero Description with the module's id and file if there is none. It is for tools
// that run nothing on a node, and trusts whoever can write there. The error says what
// is wrong with the file.
func Beside(module string) (Description, error) {
	d := Description{ID: id(module), File: module}
	path := strings.TrimSuffix(module, filepath.Ext(module)) + ".json"
	b, err := trust{}.readAll(path, maxJSON)
	if vanished(path, err) {
		return d, nil
	}
	if err != nil {
		return d, &fileError{path, err}
	}
	s, err := parsePlugin(b)
	d.take(s)
	d.Disabled = s.disabled
	unknown := d.narrow(s.hooks)
	if err == nil {
		err = s.checkModule(filepath.Base(module), unknown)
	}
	if err != nil {
		return d, &fileError{path, err}
	}
	return d, nil
}

// CheckDir says why plugins in a directory would not be believed: who can write there
// decides what runs on the node.
func CheckDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil {
		err = pluginFiles.check(info)
	}
	if err != nil {
		return &fileError{dir, cause(err)}
	}
	return nil
}
