package fuel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/wasmproxy/wasmproxy/runtime/wasm/fuel"
)

// refused are what the scan, or wazero with the same features, says of the modules that use what guests may
// not, and the scripts in which there are some.
var refused = map[string][]string{
	"results, the limit is 1": {"v2/block", "v2/br", "v2/call", "v2/call_indirect", "v2/fac", "v2/func", "v2/if", "v2/loop", "v2/type"},
	"tables, the limit is 1":  {"v2/call_indirect", "v2/exports", "v2/imports", "v2/linking", "v2/table", "v2/table_*"},
	"exports, the limit is":   {"v?/names"},
	"too long to compile":     {"v1/br_table"}, // a table of 24,000 labels; TestRandomModules has smaller ones
	"(SIMD)":                  {"v2/simd_*"},
	"value type 0x7b":         {"v2/simd_*"},
	"block of type 0x7b":      {"v2/simd_*"},
	"value type 0x6f":         {"v2/elem", "v2/br_table", "v2/global", "v2/ref_null", "v2/table_*"},
	"value type 0x70":         {"v2/elem", "v2/linking", "v2/ref_func", "v2/ref_is_null", "v2/select", "v2/table_*"},
	"table of type":           {"v2/table_*"},
	"(reference types)":       {"v2/select", "v2/unreached-valid", "v2/table_*"},
	"\"reference-types\" is":  {"v2/linking"},
	"a passive segment":       {"v2/bulk", "v2/data", "v2/elem", "v2/memory_init", "v2/table_*", "v2/token"},
	"a declarative segment":   {"v2/elem", "v2/table_grow"},
	"segment of kind":         {"v2/binary", "v2/bulk", "v2/elem"},
	"(bulk memory: segments)": {"v2/bulk", "v2/elem", "v2/memory_init"},
	"(bulk memory: tables)":   {"v2/bulk", "v2/table_*"},
	"inconsistent block type": {"v2/unreached-valid"}, // valid with reference types only
	"[test] not instantiated": {"v2/imports"},         // it was left out
}

// exceptions are assertions that do not hold, and why.
var exceptions = map[string]string{
	"binary-leb128:267": custom, "binary-leb128:592": custom, // of version 1
	"binary-leb128:268": custom, "binary-leb128:593": custom, // of version 2
	"custom:69": custom, "custom:77": custom,
	"utf8-custom-section-id": custom, // all of it
	"linking:275":            partial, "linking:288": partial, "linking:406": partial, "linking:419": partial,
}

const (
	custom  = "custom sections are left out, so they may be wrong"
	partial = "without reference types, wazero writes all segments of a module or none"
)

// floor is how many modules and assertions of the specification's scripts must
// have run, lest the test runs none.
const floorModules, floorActions = 1500, 35_000

// TestSpecification runs the official test suite, as wazero's module carries it,
// with every module rewritten: each assertion about results and traps holds on
// both engines, and they agree on the fuel that each action uses.
func TestSpecification(t *testing.T) {
	root := specification(t)
	met := map[string]bool{}
	total := counts{}
	for _, version := range []string{"v1", "v2"} {
		scripts, err := filepath.Glob(filepath.Join(root, version, "testdata", "*.json"))
		if err != nil || len(scripts) == 0 {
			t.Fatalf("no scripts of %s: %v", version, err)
		}
		for _, file := range scripts {
			name := version + "/" + strings.TrimSuffix(filepath.Base(file), ".json")
			t.Run(name, func(t *testing.T) {
				compiled := runScript(t, root, name, file, wazero.NewRuntimeConfigCompiler())
				interpreted := runScript(t, root, name, file, wazero.NewRuntimeConfigInterpreter())
				if !slices.Equal(compiled.used, interpreted.used) {
					t.Errorf("the engines do not agree on the fuel used")
				}
				for reason := range compiled.refusals {
					met[reason] = true
				}
				total.add(compiled.counts)
			})
		}
	}
	t.Logf("on each engine: %+v", total)
	if total.Modules < floorModules || total.Actions < floorActions {
		t.Errorf("only %+v ran, want at least %d modules and %d actions", total, floorModules, floorActions)
	}
	for reason, scripts := range refused {
		for _, pattern := range scripts {
			if !met[pattern+reason] {
				t.Errorf("no module of %s was refused for %q: take it off the list", pattern, reason)
			}
		}
	}
}

// specification is where wazero keeps the test suite.
func specification(t *testing.T) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatal("finding wazero's module:", err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "internal", "integration_test", "spectest")
}

// counts are what a script came to.
type counts struct{ Modules, LeftOut, Actions, Dependent, Invalid int }

func (c *counts) add(o counts) {
	c.Modules += o.Modules
	c.LeftOut += o.LeftOut
	c.Actions += o.Actions
	c.Dependent += o.Dependent
	c.Invalid += o.Invalid
}

// command is one line of a script.
type command struct {
	Type, Filename, Name, As, Text string
	Line                           int
	ModuleType                     string `json:"module_type"`
	Action                         struct {
		Type, Module, Field string
		Args                []value
	}
	Expected []value
}

// value is a number or a pattern of not-a-numbers.
type value struct {
	Type  string
	Value any
}

func (v value) bits() uint64 {
	text, _ := v.Value.(string)
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	if strings.HasSuffix(v.Type, "32") {
		return uint64(uint32(n))
	}
	return uint64(n)
}

func (v value) matches(got uint64) bool {
	quiet, sign := uint64(0x7ff8)<<48, uint64(1)<<63
	if strings.HasSuffix(v.Type, "32") {
		quiet, sign = 0x7fc00000, 1<<31
		got = uint64(uint32(got)) // wazero leaves anything in the upper half
	}
	switch v.Value {
	case "nan:canonical":
		return got&^sign == quiet
	case "nan:arithmetic":
		return got&quiet == quiet
	}
	return got == v.bits()
}

// script is one that runs.
type script struct {
	*testing.T
	name, dir string
	runtime   wazero.Runtime
	modules   map[string]*tested
	current   *tested
	counts
	refusals map[string]bool
	used     []int64
}

// tested is a rewritten instance; nil stands for one that was left out.
type tested struct {
	api.Module
	fuel, stack api.MutableGlobal
}

const features = api.CoreFeatureMutableGlobal | api.CoreFeatureNonTrappingFloatToIntConversion |
	api.CoreFeatureSignExtensionOps | api.CoreFeatureBulkMemoryOperations

func runScript(t *testing.T, root, name, file string, config wazero.RuntimeConfig) *script {
	s := &script{T: t, name: name, dir: filepath.Dir(file), modules: map[string]*tested{}, refusals: map[string]bool{}}
	s.runtime = newRuntime(t, config)
	spectest, err := os.ReadFile(filepath.Join(root, "testdata", "spectest.wasm"))
	if err == nil {
		_, err = s.runtime.InstantiateWithConfig(t.Context(), spectest, wazero.NewModuleConfig().WithName("spectest"))
	}
	if err != nil {
		t.Fatal(err)
	}
	var content struct{ Commands []command }
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &content)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range content.Commands {
		as := ""
		if i+1 < len(content.Commands) && content.Commands[i+1].Type == "register" {
			as = content.Commands[i+1].As
		}
		s.command(c, as)
	}
	return s
}

// newRuntime returns a runtime in which rewritten modules can be linked.
func newRuntime(t testing.TB, config wazero.RuntimeConfig) wazero.Runtime {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(t.Context(), config.WithCoreFeatures(features))
	t.Cleanup(func() { r.Close(context.Background()) })
	refuel := api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
		meter, ok := ctx.Value(meterKey{}).(*fuel.Meter)
		if !ok {
			stack[0] = 1 << 60
			return
		}
		left, err := meter.Refuel(int64(stack[0]))
		if err != nil {
			panic(err)
		}
		stack[0] = uint64(left)
	})
	i64 := []api.ValueType{api.ValueTypeI64}
	_, err := r.NewHostModuleBuilder(fuel.Module).NewFunctionBuilder().
		WithGoModuleFunction(refuel, i64, i64).Export(fuel.Refuel).Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// meterKey finds a *fuel.Meter in a context. Without one, fuel has no end.
type meterKey struct{}

func (s *script) command(c command, as string) {
	if base := path.Base(s.name); exceptions[base]+exceptions[fmt.Sprintf("%s:%d", base, c.Line)] != "" {
		return
	}
	switch c.Type {
	case "module":
		s.module(c, as)
	case "assert_return", "action", "assert_trap", "assert_exhaustion":
		m := s.current
		if c.Action.Module != "" {
			m = s.modules[c.Action.Module]
		}
		if m == nil {
			s.Dependent++
			return
		}
		s.action(c, m)
	case "assert_malformed", "assert_invalid", "assert_unlinkable", "assert_uninstantiable":
		if c.ModuleType == "text" {
			return // of the text format, which is not ours
		}
		s.Invalid++
		if m, err := s.instantiate(c, ""); err == nil {
			m.Close(s.Context())
			s.Errorf("%s:%d: the module is wrong (%s) and was taken", s.name, c.Line, c.Text)
		}
	}
}

// module instantiates a module, or notes that it is left out.
func (s *script) module(c command, as string) {
	m, err := s.instantiate(c, as)
	if err == nil {
		s.Modules++
	} else {
		s.LeftOut++
		s.leftOut(c, err)
		m = nil
	}
	s.current = m
	if c.Name != "" {
		s.modules[c.Name] = m
	}
}

func (s *script) leftOut(c command, err error) {
	for reason, scripts := range refused {
		for _, pattern := range scripts {
			if ok, _ := path.Match(pattern, s.name); ok && strings.Contains(err.Error(), reason) {
				s.refusals[pattern+reason] = true
				return
			}
		}
	}
	s.Errorf("%s:%d: %s: %v", s.name, c.Line, c.Filename, err)
}

func (s *script) instantiate(c command, as string) (*tested, error) {
	original, err := os.ReadFile(filepath.Join(s.dir, c.Filename))
	if err != nil {
		s.Fatal(err)
	}
	rewritten, err := instrument(original, fuel.Options{})
	if err != nil {
		return nil, err
	}
	m, err := s.runtime.InstantiateWithConfig(s.Context(), rewritten, wazero.NewModuleConfig().WithName(as).WithStartFunctions())
	if err != nil {
		return nil, err
	}
	if start := m.ExportedFunction(fuel.Start); start != nil {
		if _, err := start.Call(s.Context()); err != nil {
			return nil, errors.Join(err, m.Close(s.Context()))
		}
	}
	return metered(m), nil
}

func metered(m api.Module) *tested {
	return &tested{m, m.ExportedGlobal(fuel.Fuel).(api.MutableGlobal), m.ExportedGlobal(fuel.Stack).(api.MutableGlobal)}
}

// action calls a function or reads a global, and holds the outcome to the script.
func (s *script) action(c command, m *tested) {
	s.Actions++
	where := fmt.Sprintf("%s:%d: %s", s.name, c.Line, c.Action.Field)
	if c.Action.Type == "get" {
		if got := m.ExportedGlobal(c.Action.Field).Get(); !c.Expected[0].matches(got) {
			s.Errorf("%s is %#x, want %v", where, got, c.Expected[0])
		}
		return
	}
	args := make([]uint64, len(c.Action.Args))
	for i, a := range c.Action.Args {
		args[i] = a.bits()
	}
	const plenty = 1 << 60
	m.fuel.Set(plenty)
	m.stack.Set(fuel.DefaultStack)
	got, err := m.ExportedFunction(c.Action.Field).Call(s.Context(), args...)
	if c.Type != "assert_exhaustion" { // engines differ in how deep they recurse
		s.used = append(s.used, plenty-int64(m.fuel.Get()))
	}
	switch {
	case c.Type == "assert_trap" || c.Type == "assert_exhaustion":
		if err == nil || !strings.Contains(err.Error(), trapText(c.Text)) && !overflowed(c, m) {
			s.Errorf("%s: got %v, want the trap %q", where, err, c.Text)
		}
	case err != nil:
		s.Errorf("%s: %v", where, err)
	case int32(m.stack.Get()) != fuel.DefaultStack:
		s.Errorf("%s: %d bytes of stack are left, want all", where, int32(m.stack.Get()))
	case c.Type == "assert_return" && !slices.EqualFunc(c.Expected, got, value.matches):
		s.Errorf("%s: got %#x, want %v", where, got, c.Expected)
	}
}

func overflowed(c command, m *tested) bool {
	return c.Type == "assert_exhaustion" && int32(m.stack.Get()) < 0
}

// trapText is what wazero calls a trap of the specification.
func trapText(text string) string {
	switch {
	case strings.HasPrefix(text, "undefined"), strings.HasPrefix(text, "uninitialized"), text == "out of bounds table access":
		return "invalid table access"
	case text == "indirect call":
		return "indirect call type mismatch"
	case text == "call stack exhausted":
		return "stack overflow"
	}
	return text
}
