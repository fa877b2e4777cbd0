package wasm

import (
	"bytes"
	"fmt"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/wasm/binary"
)

// parseManifest reads the JSON of a manifest and makes its texts fit for a terminal.
func parseManifest(b []byte) (abi.Manifest, error) {
	m, err := plugin.ParseManifest(b)
	if err != nil {
		return m, err
	}
	for _, text := range []*string{&m.Description, &m.License, &m.SDK} {
		*text = plugin.Printable(*text, maxReason)
	}
	for _, names := range [][]string{m.Capabilities, m.Optional} {
		for i, name := range names {
			names[i] = plugin.Printable(name, maxTail)
		}
	}
	return m, nil
}

// StaticManifest returns the manifest of a module's custom section. It looks at nothing
// else, so it works for a module that is cut short or cannot be loaded. ok
// is false if there is none that can be read.
func StaticManifest(module []byte) (m abi.Manifest, ok bool) {
	if !bytes.HasPrefix(module, []byte(binary.Magic)) {
		return m, false
	}
	for id, content := range binary.Sections(module) {
		if id == binary.CustomSection && string(content.Name()) == abi.ManifestSection {
			m, err := parseManifest(content.Rest())
			return m, err == nil
		}
	}
	return m, false
}

// checkVersion compares a guest's version of the ABI with the host's. A later minor version is that of the guest's SDK: what
// the guest uses of it, and this host does not have, shows by itself.
func checkVersion(v uint32) error {
	major, minor := v>>16, v&0xffff
	if major == abi.Major {
		return nil
	}
	const wants = "it was built for version %d.%d of the plugin ABI, this host has %d.%d"
	hint := "; a newer wasmproxy is needed"
	if major < abi.Major {
		hint = "; rebuild it with a newer SDK"
	}
	return fmt.Errorf(wants+hint, major, minor, abi.Major, abi.Minor)
}
