package wasm

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/wasmproxy/wasmproxy/abi"
)

// name is what plugins and versions may be called: words that need no quoting
// anywhere.
var name = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,62}$`)

// parseManifest reads the JSON of a manifest. Keys that it does not know belong
// to a later minor version and are passed over.
func parseManifest(b []byte) (abi.Manifest, error) {
	var m abi.Manifest
	if len(b) > abi.MaxManifest {
		return m, fmt.Errorf("manifest has %d bytes, the limit is %d", len(b), abi.MaxManifest)
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return abi.Manifest{}, fmt.Errorf("manifest is not the JSON it should be: %w", err)
	}
	if err := checkManifest(&m); err != nil {
		return abi.Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

func checkManifest(m *abi.Manifest) error {
	if !name.MatchString(m.Name) {
		return fmt.Errorf("name %q is not 1 to 63 letters, digits and any of . _ + -", m.Name)
	}
	if !name.MatchString(m.Version) {
		return fmt.Errorf("version %q is not 1 to 63 letters, digits and any of . _ + -", m.Version)
	}
	if len(m.Hooks) == 0 {
		return fmt.Errorf("hooks is empty, so it would never be called")
	}
	for _, h := range m.Hooks {
		if _, ok := abi.HookByName(h); !ok {
			return fmt.Errorf("hooks holds %q, which this host does not have", h)
		}
	}
	for _, text := range []*string{&m.Description, &m.License, &m.SDK} {
		*text = printable(*text, maxReason)
	}
	return nil
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
