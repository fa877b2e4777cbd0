package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// readModule reads a module and the JSON file beside it, if there is one. The module does
// not exist if it is gone by now.
func readModule(path string, described bool) (d Description, exists bool) {
	d = Description{ID: id(path), File: path}
	var s settings
	beside := strings.TrimSuffix(path, ".wasm") + ".json"
	if described {
		var err error
		if s, err = d.describe(beside); err != nil {
			d.Digest, _ = digest(path) // another module is another description
			d.Problem = &fileError{beside, err}
			return d, true
		}
	}
	exists = d.find(path, beside, s)
	return d, exists
}

// describe reads the JSON file beside a module. While it cannot be read, or not
// what it says of failures, the module must not be passed by, unless it is only tried.
func (d *Description) describe(path string) (s settings, err error) {
	b, err := pluginFiles.readAll(path, maxJSON)
	if vanished(path, err) {
		return s, nil
	}
	readable := err == nil
	if readable {
		s, err = parsePlugin(b)
	}
	d.take(s)
	unknown := d.narrow(s.hooks)
	if broken := new(unreadableError); !readable || s.unclear && !s.dryRun || errors.As(err, &broken) {
		d.Policy = plugin.Fail
	}
	if err == nil {
		err = s.checkModule(filepath.Base(d.File), unknown)
	}
	return s, err
}

// readNamed makes d, which a JSON file describes that names a module, the
// description of that module.
func (d *Description) readNamed(s settings) {
	d.Module, d.Endpoint, d.UnknownHooks = s.module, "", nil
	unknown := d.narrow(s.hooks)
	if d.Problem != nil {
		return
	}
	if err := errors.Join(trusted(d.File), s.checkModule(s.module, unknown)); err != nil {
		d.Problem = &fileError{d.File, err}
		return
	}
	if exists := d.find(d.modulePath(), d.File, s); !exists {
		d.Problem = &fileError{d.File, fmt.Errorf("wasm-module: there is no %s beside it", plugin.Name(s.module))}
	}
}

// narrow takes the hooks that a module keeps, and returns the names of none.
func (d *Description) narrow(hooks []string) (unknown []string) {
	d.Hooks, unknown = hookSet(hooks)
	d.HooksNamed = hooks != nil
	return unknown
}

// checkModule refuses what means nothing for a module.
func (s settings) checkModule(module string, unknown []string) error {
	switch {
	case s.endpoint != "":
		return fmt.Errorf("remote-endpoint: %s beside it is a plugin too; one of the two must go", plugin.Name(module))
	case s.module != "" && s.module != module:
		return fmt.Errorf("wasm-module: %s beside it is a plugin too; one of the two must go", plugin.Name(module))
	case len(unknown) > 0:
		return unknownHook(unknown[0])
	}
	return nil
}

// find looks at the module at path; a wrong digest is the JSON file's problem.
func (d *Description) find(path, json string, s settings) (exists bool) {
	if d.Disabled = s.disabled; s.disabled {
		return true
	}
	sum, err := digest(path)
	d.Digest = sum
	switch {
	case vanished(path, err):
		return false
	case err != nil:
		d.Problem = &fileError{path, err}
	case s.sha256 != "" && s.sha256 != sum:
		d.Problem = &fileError{json, fmt.Errorf("sha256: %s is wanted, and %s has %s", s.sha256, plugin.Name(filepath.Base(path)), sum)}
	}
	return true
}

// magic is how a module begins. What follows is for package wasm to judge.
const magic = "\x00asm"

// digest returns the SHA-256 of a module in hex.
func digest(path string) (string, error) {
	if dir := filepath.Dir(path); trusted(dir) != nil {
		return "", fmt.Errorf("is a module in %s, which %w", plugin.Name(dir), trusted(dir))
	}
	f, err := pluginFiles.open(path, maxModule)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash := sha256.New()
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != magic {
		return "", errors.New("is not a WebAssembly module")
	}
	hash.Write(head)
	if _, err := io.Copy(hash, io.LimitReader(f, maxModule)); err != nil {
		return "", regular.Cause(err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// trusted judges a file or directory, and the directories above it, by the rules of the
// plugin directory: more people may register a process than may say what runs in the proxy.
func trusted(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return regular.Cause(err)
	}
	if err := pluginFiles.check(info); err != nil {
		return err
	}
	return pluginFiles.checkWay(path)
}
