package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
)

// ParseManifest reads and checks the JSON of a manifest. Keys and names of
// capabilities that it does not know belong to a later minor version of the ABI:
// it passes over the former and keeps the latter.
func ParseManifest(b []byte) (abi.Manifest, error) {
	var file manifestFile
	if len(b) > abi.MaxManifest {
		return abi.Manifest{}, fmt.Errorf("manifest has %d bytes, the limit is %d", len(b), abi.MaxManifest)
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return abi.Manifest{}, fmt.Errorf("manifest is not the JSON it should be: %w", err)
	}
	m := file.Manifest
	for _, h := range file.Hooks {
		m.Hooks = append(m.Hooks, abi.ManifestHook(h))
	}
	if !bytes.Equal(file.ConfigSchema, []byte("null")) {
		m.ConfigSchema = string(file.ConfigSchema)
	}
	if err := checkManifest(&m); err != nil {
		return abi.Manifest{}, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

// manifestFile is a manifest as JSON has it, where that is not abi.Manifest's own form.
type manifestFile struct {
	abi.Manifest
	Hooks        []manifestHook  `json:"hooks"`
	ConfigSchema json.RawMessage `json:"config_schema"`
}

// manifestHook is the name of a hook, or an object.
type manifestHook abi.ManifestHook

func (h *manifestHook) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &h.Hook)
	}
	return json.Unmarshal(b, (*abi.ManifestHook)(h))
}

// word is what plugins and versions may be called: what needs no quoting
// anywhere.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,62}$`)

func checkManifest(m *abi.Manifest) error {
	if !word.MatchString(m.Name) {
		return fmt.Errorf("name %q is not 1 to 63 letters, digits and any of . _ + -, the first a letter or digit", m.Name)
	}
	if !word.MatchString(m.Version) {
		return fmt.Errorf("version %q is not 1 to 63 letters, digits and any of . _ + -, the first a letter or digit", m.Version)
	}
	if m.State != "" && m.State != abi.StateNone && m.State != abi.StateInstance {
		return fmt.Errorf("state %q is neither %q nor %q", m.State, abi.StateNone, abi.StateInstance)
	}
	if len(m.Durable) > MaxDurable {
		return fmt.Errorf("durable holds %d prefixes, the limit is %d", len(m.Durable), MaxDurable)
	}
	for _, prefix := range m.Durable {
		if len(prefix) > MaxKVKey {
			return fmt.Errorf("durable holds a prefix of %d bytes, a key of kv has at most %d", len(prefix), MaxKVKey)
		}
	}
	errs := []error{checkHooks(m.Hooks, m.Optional)}
	switch ticks := m.HookSet().Has(abi.Tick); {
	case ticks && m.TickMS < abi.MinTickMS:
		errs = append(errs, fmt.Errorf("tick_ms is %d, hook Tick needs %d or more", m.TickMS, abi.MinTickMS))
	case m.TickMS > math.MaxInt64/int64(time.Millisecond): // it would go round to a short one
		errs = append(errs, fmt.Errorf("tick_ms is %d, and may be at most %d", m.TickMS, math.MaxInt64/int64(time.Millisecond)))
	case !ticks && m.TickMS != 0:
		errs = append(errs, errors.New("tick_ms is for plugins with hook Tick"))
	}
	for _, limit := range Limits {
		if v := *limit.Of(&m.Limits); v < 0 {
			errs = append(errs, fmt.Errorf("limits.%s is %d, it must not be negative", limit.Key, v))
			break
		}
	}
	return errors.Join(errs...)
}

// checkHooks lets hooks pass that this host does not have if the plugin can do without them.
func checkHooks(hooks []abi.ManifestHook, optional []string) error {
	if len(hooks) == 0 {
		return errors.New("hooks is empty, so it would never be called")
	}
	var seen abi.HookSet
	for _, wanted := range hooks {
		h, ok := abi.HookByName(wanted.Hook)
		switch {
		case !ok && slices.Contains(optional, wanted.Hook):
			continue
		case !ok:
			const lacks = "hooks holds %q, which this host does not have; this host serves %s %d.%d, a newer wasmproxy may serve it"
			return fmt.Errorf(lacks, wanted.Hook, abi.Module, abi.Major, abi.Minor)
		case seen.Has(h):
			return fmt.Errorf("hooks holds %s twice", wanted.Hook)
		}
		if err := CheckMatch(wanted.Match); err != nil {
			return fmt.Errorf("hooks: %s: match: %w", wanted.Hook, err)
		}
		seen |= abi.HookSetOf(h)
	}
	if seen == 0 {
		return errors.New("hooks holds none that this host has, so it would never be called")
	}
	return nil
}
