package conformance

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy"
	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/group"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// Test is one that a host takes: it loads the module, tells it the event, and says what came of it.
type Test struct {
	ID     int
	Name   string
	Needs  []string     // groups of the ABI beside the core
	Module string       // a file
	Times  int          // how often the event is told; the outcome is that of the last time
	Case   fixture.Case // Grant is all that is granted; Want is nil for a host

	module []byte
	says   []string // what the guest says why it fails
}

// group is that by which the test is reported.
func (t *Test) group() string {
	if len(t.Needs) == 0 {
		return group.Core
	}
	return t.Needs[len(t.Needs)-1]
}

// Tests are all of the kit: those of testdata/abi/modules.json, and the vectors.
func Tests() ([]Test, error) {
	text, err := wasmproxy.Conformance.ReadFile("testdata/abi/modules.json")
	if err != nil {
		return nil, err
	}
	var modules []map[string]json.RawMessage
	if err := json.Unmarshal(text, &modules); err != nil {
		return nil, fmt.Errorf("modules.json: %w", err)
	}
	tests := make([]Test, len(modules))
	for i, keys := range modules {
		if tests[i], err = moduleTest(keys); err != nil {
			return nil, fmt.Errorf("modules.json: test %d: %w", i+1, err)
		}
	}

	all, err := Embedded()
	if err != nil {
		return nil, err
	}
	program, err := wasmproxy.Conformance.ReadFile("testdata/abi/guest/wat/guest.wasm")
	if err != nil {
		return nil, err
	}
	for i := range all {
		if strings.HasPrefix(all[i].Name, "random") {
			continue // the numbers are each host's own
		}
		for _, v := range all[i].divide() {
			c, err := v.Fixture()
			if err != nil {
				return nil, err
			}
			tests = append(tests, Test{Name: v.Name, Needs: v.Needs, Case: c, module: withManifest(program, c.Hook, nil), says: v.says()})
		}
	}
	for i := range tests {
		tests[i].ID, tests[i].Times = i+1, max(tests[i].Times, 1)
	}
	return tests, nil
}

// Embedded reads the vectors that the program carries.
func Embedded() ([]Vector, error) {
	const folder = "testdata/abi/"
	text, err := wasmproxy.Conformance.ReadFile(folder + "samples.json")
	if err != nil {
		return nil, err
	}
	samples, err := ReadSamples(text)
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(wasmproxy.Conformance, folder+"vectors/*.json")
	if err != nil {
		return nil, err
	}
	var all []Vector
	for _, file := range files {
		text, err := wasmproxy.Conformance.ReadFile(file)
		if err != nil {
			return nil, err
		}
		list, err := Read(text, samples)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// says are the reasons that the vector gives by its own calls.
func (v *Vector) says() (reasons []string) {
	for _, c := range slices.Concat(v.Configure, v.Calls) {
		if name := c.Name(); (name == "fail" || name == "abort") && !c.Trap {
			if text, ok := c.Args[0].(string); ok {
				reasons = []string{text}
			}
		}
	}
	return reasons
}

func moduleTest(keys map[string]json.RawMessage) (t Test, err error) {
	var wasm, says string
	var own, fails bool
	var optional []string
	for key, to := range map[string]any{
		"wasm": &wasm, "says": &says, "own": &own, "fails": &fails, "optional": &optional, "times": &t.Times,
	} {
		if err := decode(keys[key], to); err != nil {
			return t, fmt.Errorf("%s: %w", key, err)
		}
		delete(keys, key)
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return t, err
	}
	cases, err := fixture.Parse("", text)
	if err != nil {
		return t, err
	}
	if t.module, err = wasmproxy.Conformance.ReadFile("testdata/wat/" + wasm + ".wasm"); err != nil {
		return t, err
	}
	t.Name, t.Case = cases[0].Name, cases[0]
	if t.Case.Want == nil {
		t.Case.Want = &fixture.Want{}
	}
	if fails {
		t.Case.Want.Error = "failed"
	}
	if says != "" {
		t.says = []string{says}
	}
	if !own {
		t.module = withManifest(t.module, t.Case.Hook, optional)
	}
	return t, nil
}

// withManifest puts a manifest into a section before those of a module. It wants one hook, and can do
// without these functions and those of optional groups.
func withManifest(module []byte, hook abi.Hook, optional []string) []byte {
	for _, g := range group.All[1:] {
		optional = append(optional, g.Functions...)
	}
	m := abi.Manifest{
		Name: "conformance", Version: "1.0.0", Hooks: []abi.ManifestHook{{Hook: hook.String()}}, Capabilities: abi.AllCapabilities.Names(),
		Optional: optional,
	}
	if hook == abi.Tick {
		m.TickMS = abi.MinTickMS
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // a manifest always has a form in JSON
	}
	section := append(binary.AppendUvarint(nil, uint64(len(abi.ManifestSection))), abi.ManifestSection...)
	section = append(section, text...)
	const header = 8 // of a module
	return slices.Concat(module[:header], binary.AppendUvarint([]byte{0}, uint64(len(section))), section, module[header:])
}
