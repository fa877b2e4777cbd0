package registry

import (
	"path/filepath"
	"strings"
)

// Beside returns what the JSON file beside a module says of it, X.json of X.wasm: the
// zero Description with the module's id and file if there is none. It is for tools
// that run nothing on a node, and trusts whoever can write there. The error says what
// is wrong with the file. Its Digest is the one that the file wants, "" if it wants none.
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
	d.Disabled, d.Digest = s.disabled, s.sha256
	unknown := d.narrow(s.hooks)
	if err == nil {
		err = s.checkModule(filepath.Base(module), unknown)
	}
	if err != nil {
		return d, &fileError{path, err}
	}
	return d, nil
}

// CheckTrust says why a plugin directory, or a file in it, would not be believed: who can
// write there decides what runs on the node.
func CheckTrust(path string) error {
	whole, err := filepath.Abs(path)
	if err == nil {
		err = trusted(whole)
	}
	if err != nil {
		return &fileError{path, err}
	}
	return nil
}
