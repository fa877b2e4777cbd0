package wasm

import (
	"fmt"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
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

// checkVersion compares a guest's version of the ABI with the host's.
func checkVersion(v uint32) error {
	major, minor := v>>16, v&0xffff
	if major == abi.Major && minor <= abi.Minor {
		return nil
	}
	const wants = "it was built for version %d.%d of the plugin ABI, this host has %d.%d"
	hint := "; a newer wasmproxy is needed"
	if major < abi.Major {
		hint = "; rebuild it with a newer SDK"
	}
	return fmt.Errorf(wants+hint, major, minor, abi.Major, abi.Minor)
}
