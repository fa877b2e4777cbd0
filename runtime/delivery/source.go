package delivery

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// Plugin is one that is to be delivered.
type Plugin struct {
	ID     string
	Text   []byte // of its JSON file, ID.json, in the plugin directory; of a module's it names Module by Digest
	Module []byte // nil for a hook server
	Digest string // of Module, SHA-256 in hex; empty for a hook server
}

// Read reads the plugins of a directory, by the rules of a plugin directory but for who may write there: kubelet makes
// a ConfigMap's volume writable for all. The error says everything that is wrong.
func Read(dir string) (all []Plugin, err error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, err
	}
	found, err := registry.ReadUntrusted(dir)
	if err != nil {
		return nil, err
	}
	for _, d := range found {
		if base := filepath.Base(d.File); strings.TrimSuffix(base, filepath.Ext(base)) != d.ID {
			return nil, fmt.Errorf("%s has characters that cannot be printed: give the file another name", plugin.Name(d.File))
		}
		p := Plugin{ID: d.ID, Text: []byte(cmp.Or(d.Text, "{}\n"))}
		if !d.IsHookServer() {
			path := filepath.Join(dir, cmp.Or(d.Module, filepath.Base(d.File)))
			if p.Module, err = regular.Read(path, abi.MaxModule, nil); err != nil {
				return nil, fmt.Errorf("%s: %w", plugin.Name(path), err)
			}
			p.Digest = digest(p.Module)
			if d.Digest != "" && p.Digest != d.Digest {
				return nil, fmt.Errorf("%s changes while it is read: try again", plugin.Name(path))
			}
			for _, set := range [][2]string{{"sha256", p.Digest}, {"wasm-module", modulePath(p.Digest)}} {
				if p.Text, err = SetKey(p.Text, set[0], set[1]); err != nil {
					return nil, fmt.Errorf("%s: %w", plugin.Name(d.File), err)
				}
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// modulePath is where a module lies, from the plugin directory.
func modulePath(digest string) string { return filepath.Join(registry.Modules, digest+".wasm") }

func digest(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// SetKey sets a key of a JSON object, of which all else stays as it is written.
func SetKey(text []byte, key string, to any) ([]byte, error) {
	var encoded bytes.Buffer
	e := json.NewEncoder(&encoded)
	e.SetEscapeHTML(false)
	if err := e.Encode(to); err != nil {
		return nil, err
	}
	value := bytes.TrimSpace(encoded.Bytes())
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil {
		return nil, err
	}
	if whole == nil {
		return nil, errors.New("it is not a JSON object")
	}
	begin, from, end, err := Value(text, key)
	if err != nil {
		return nil, err
	}
	if end > 0 {
		return slices.Concat(text[:from], value, text[end:]), nil
	}
	member := fmt.Sprintf("%q: %s", key, value)
	if len(whole) > 0 {
		member += ", "
	}
	return slices.Concat(text[:begin], []byte(member), bytes.TrimLeft(text[begin:], " ")), nil
}

// Value returns where the members of a JSON object begin, and where the value of a key is; end is 0 if it has no such key.
func Value(object []byte, key string) (begin, from, end int, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return 0, 0, 0, err
	}
	begin = int(d.InputOffset())
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return 0, 0, 0, err
		}
		var old json.RawMessage
		if err := d.Decode(&old); err != nil {
			return 0, 0, 0, err
		}
		if name == key { // the last one counts
			end = int(d.InputOffset())
			from = end - len(old)
		}
	}
	return begin, from, end, nil
}
