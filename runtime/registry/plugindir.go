package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// readPluginDir reads the plugin directory. X.json beside X.wasm describes it;
// alone it is a hook server's. Hidden files and other extensions are passed over.
func readPluginDir(dir string, names []string) (found []Description, problems []error) {
	for _, name := range names {
		path, stem := filepath.Join(dir, name), id(name)
		switch ext := filepath.Ext(name); {
		case strings.HasPrefix(name, "."):
		case ext == ".wasm":
			if d, wanted := readModule(path, slices.Contains(names, stem+".json")); wanted {
				found = append(found, d)
			}
		case ext == ".json" && !slices.Contains(names, stem+".wasm"):
			d, s, ok := readHookServer(path, pluginFiles, parsePlugin)
			if ok && d.Problem == nil && s.endpoint == "" {
				problems = append(problems, &fileError{path, fmt.Errorf("describes no plugin: it has no remote-endpoint and no %s.wasm beside it", stem)})
			} else if ok && !s.disabled {
				found = append(found, d)
			}
		}
	}
	return found, problems
}

// readModule reads a module and the JSON file beside it, if there is one. The
// module is not wanted if it is switched off, or gone by now.
func readModule(path string, described bool) (d Description, wanted bool) {
	d = Description{ID: id(path), File: path}
	var s settings
	beside := strings.TrimSuffix(path, ".wasm") + ".json"
	if described {
		var err error
		if s, err = d.describe(beside); err != nil {
			d.Problem = &fileError{beside, err}
			return d, true
		}
	}
	sum, err := digest(path)
	d.Digest = sum
	switch {
	case s.disabled || vanished(path, err):
		return d, false
	case err != nil:
		d.Problem = &fileError{path, err}
	case s.sha256 != "" && s.sha256 != sum:
		d.Problem = &fileError{beside, fmt.Errorf("sha256: %s is wanted, and %s has %s", s.sha256, filepath.Base(path), sum)}
	}
	return d, true
}

// describe reads the JSON file beside a module. While it cannot be read, or not
// what it says of failures, the module must not be passed by.
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
	var unknown []string
	d.Hooks, unknown = hookSet(s.hooks)
	d.HooksNamed = s.hooks != nil
	if broken := new(unreadableError); !readable || s.unclear || errors.As(err, &broken) {
		d.Policy = plugin.Fail
	}
	switch {
	case err != nil:
		return s, err
	case s.endpoint != "":
		return s, fmt.Errorf("remote-endpoint: %s.wasm beside it is a plugin too; one of the two must go", d.ID)
	case len(unknown) > 0:
		return s, unknownHook(unknown[0])
	}
	return s, nil
}

// magic is how a module begins. What follows is for package wasm to judge.
const magic = "\x00asm"

// digest returns the SHA-256 of a module in hex.
func digest(path string) (string, error) {
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
		return "", cause(err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
