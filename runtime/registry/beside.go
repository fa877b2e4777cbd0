package registry

import (
	"errors"
	"path/filepath"
)

// Beside returns what the JSON file beside a module says of it, X.json of X.wasm: the
// zero Description with the module's id and file if there is none. It is for tools
// that run nothing on a node, and trusts whoever can write there. The error says what
// is wrong with the file. Its Digest is the one that the file wants, "" if it wants none.
func Beside(module string) (Description, error) {
	s := now(trust{}).readBeside(module)
	s.Digest = s.sha256
	return s.Description, s.Problem
}

// ReadUntrusted reads a plugin directory, and trusts whoever can write there: it is for tools that copy its plugins,
// and run none from there. Those that are switched off are in the list, without the digests of their modules. The
// error says everything that is wrong. A directory that is not there holds no plugin.
func ReadUntrusted(dir string) ([]Description, error) {
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	r := source{whole, trust{}, parsePlugin, false}.read(now(trust{}))
	found, _ := unnamed(r.found, nil)
	err = errors.Join(append(r.problems, r.failed)...)
	for _, d := range found {
		err = errors.Join(err, d.Problem)
	}
	return found, err
}

// CheckTrust says why a plugin directory, or a file in it, would not be believed: who can
// write there decides what runs on the node.
func CheckTrust(path string) error {
	return pluginFiles.judge(path)
}

// CheckHookTrust is CheckTrust for a directory of hook servers, or a file in it, which users of
// another process may own.
func CheckHookTrust(path string) error { return hookFiles.judge(path) }

func (t trust) judge(path string) error {
	whole, err := filepath.Abs(path)
	if err == nil {
		err = t.trusted(whole)
	}
	if err != nil {
		return &fileError{path, err}
	}
	return nil
}
