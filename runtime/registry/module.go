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

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// besideOf is the JSON file beside a module.
func besideOf(module string) string {
	return strings.TrimSuffix(module, filepath.Ext(module)) + ".json"
}

// readModule describes a module, which may have a JSON file beside it, and reports whether there is one.
func (f files) readModule(path string, beside bool) (d Description, exists bool) {
	s := settings{Description: Description{ID: id(path), File: path}}
	if beside {
		s = f.readBeside(path)
	}
	exists = s.find(path, besideOf(path), f.sum)
	return s.Description, exists
}

// readBeside reads the JSON file beside a module.
func (f files) readBeside(module string) (s settings) {
	path := besideOf(module)
	b, err := f.text(f.modules, path)
	if err == nil {
		s, err = parsePlugin(b)
		s.note(b)
	}
	if vanished(path, err) {
		err = nil
	}
	if err == nil {
		err = s.checkModule(filepath.Base(module))
	}
	s.Hooks, _ = hookSet(s.hooks)
	s.ID, s.File, s.Module, s.Endpoint = id(module), module, "", ""
	if err != nil {
		s.Disabled, s.Problem = false, &fileError{path, err}
	}
	return s
}

// checkModule refuses what means nothing for a module.
func (s *settings) checkModule(module string) error {
	_, wrong := hookSet(s.hooks)
	switch {
	case s.Endpoint != "":
		return fmt.Errorf("remote-endpoint: %s beside it is a plugin too; one of the two must go", plugin.Name(module))
	case s.Module != "" && s.Module != module:
		return fmt.Errorf("wasm-module: %s beside it is a plugin too; one of the two must go", plugin.Name(module))
	case len(wrong) > 0:
		var names []string
		for _, info := range abi.Hooks {
			names = append(names, info.Name)
		}
		return fmt.Errorf("runtime-hooks: %w", unknown("hook", wrong[0], names))
	}
	return nil
}

// find looks at the module at path, and reports whether there is one. A wrong digest is the problem of the JSON file.
func (s *settings) find(path, json string, sum func(path string) (string, error)) (exists bool) {
	if s.Disabled || s.Problem != nil {
		return true
	}
	have, err := sum(path)
	s.Digest = have
	switch {
	case vanished(path, err):
		return false
	case err != nil:
		s.Problem = &fileError{path, err}
	case s.sha256 != "" && s.sha256 != have:
		s.Problem = &fileError{json, anotherDigest(s.sha256, filepath.Base(path), have)}
	default:
		s.findShadow(json, sum)
	}
	return true
}

// magic is how a module begins. What follows is for package wasm to judge.
const magic = "\x00asm"

// digest returns the SHA-256 of a module in hex.
func (t trust) digest(path string) (string, error) {
	dir := filepath.Dir(path)
	if err := t.trusted(dir); err != nil {
		return "", fmt.Errorf("is a module in %s, which %w", plugin.Name(dir), err)
	}
	f, err := regular.Open(path, maxModule, t.check)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := t.checkTarget(path); err != nil {
		return "", err
	}
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

// note notes the text of the JSON file.
func (s *settings) note(b []byte) {
	s.Settings, s.Text = sumOf(b), string(b)
	if s.shadow != nil {
		s.Alone = sumOf(withoutShadow(b))
	}
}

// sumOf returns the SHA-256 of a file's content in hex.
func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// trusted judges a file or directory, and the directories above it.
func (t trust) trusted(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return regular.Cause(err)
	}
	if err := t.check(info); err != nil {
		return err
	}
	return t.checkWay(path)
}

func anotherDigest(wanted, module, has string) error {
	return fmt.Errorf("sha256: %s is wanted, and %s has %s", wanted, plugin.Name(module), has)
}
