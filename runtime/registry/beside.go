package registry

import "path/filepath"

// Beside returns what the JSON file beside a module says of it, X.json of X.wasm: the
// zero Description with the module's id and file if there is none. It is for tools
// that run nothing on a node, and trusts whoever can write there. The error says what
// is wrong with the file. Its Digest is the one that the file wants, "" if it wants none.
func Beside(module string) (Description, error) {
	anybody := func(_ trust, path string) ([]byte, error) { return trust{}.readAll(path, maxJSON) }
	s := files{text: anybody}.readBeside(module)
	s.Digest = s.sha256
	return s.Description, s.Problem
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
