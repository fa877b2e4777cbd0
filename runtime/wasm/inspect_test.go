package wasm

import (
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

func inspect(t *testing.T, module []byte) Inspection {
	t.Helper()
	in, err := Inspect(t.Context(), module, PluginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

func TestInspect(t *testing.T) {
	in := inspect(t, wat(t, "print-flood"))
	if len(in.Problems) > 0 || in.Manifest.Name != "print-flood" || in.ManifestSource != "export" || in.ABI != abi.Version {
		t.Errorf("got %+v", in)
	}
	if in.Size != len(wat(t, "print-flood")) || len(in.SHA256) != 64 || in.MemoryMin != 1 || in.MemoryMax != 0 {
		t.Errorf("got %+v", in)
	}
	if want := []string{"memory", "wp_abi", "wp_manifest", "wp_hook"}; !slices.Equal(in.Exports, want) {
		t.Errorf("got exports %q, want %q", in.Exports, want)
	}
	if i := in.Imports[0]; i.Module != wasiModule || i.Name != "fd_write" || i.Type != "(i32, i32, i32, i32) -> i32" || i.State != Served {
		t.Errorf("got import %+v", i)
	}
	var names []string
	for _, s := range in.Sections {
		names = append(names, s.Name)
	}
	if want := []string{"type", "import", "function", "memory", "export", "code", "data", `"name"`}; !slices.Equal(names, want) {
		t.Errorf("got sections %q, want %q", names, want)
	}
}

// TestInspectRunsNothing inspects modules that would not end, or trap, if they ran.
func TestInspectRunsNothing(t *testing.T) {
	const manifest = `{"name":"quiet","version":"1.0.0","hooks":["PreCreateContainer"]}`
	for _, guest := range []string{"initialize-loop", "start-trap"} {
		in := inspect(t, withSection(wat(t, guest), abi.ManifestSection, []byte(manifest)))
		if len(in.Problems) > 0 || in.Manifest.Name != "quiet" || in.ManifestSource != "custom section" || in.ABI != abi.Version {
			t.Errorf("%s: got %+v", guest, in)
		}
	}
	if in := inspect(t, wat(t, "start-trap")); len(in.Problems) != 1 || !strings.Contains(in.Problems[0], "unreachable in boot") {
		t.Errorf("got %+v", in)
	}
}

// TestInspectSchema inspects a schema that no configuration could be checked by.
func TestInspectSchema(t *testing.T) {
	const manifest = `{"name":"quiet","version":"1.0.0","hooks":["PreCreateContainer"],"config_schema":{"type":"objekt"}}`
	in := inspect(t, withSection(wat(t, "initialize-loop"), abi.ManifestSection, []byte(manifest)))
	if len(in.Problems) != 1 || !strings.HasPrefix(in.Problems[0], "manifest: config_schema: /type: ") {
		t.Errorf("got problems %q", in.Problems)
	}
}

func TestInspectProblems(t *testing.T) {
	for guest, want := range map[string]string{
		"unknown-import":    "it imports wp1.make_coffee (i32) -> i32, which this host does not have",
		"command":           "it is a command",
		"empty":             "it does not export wp_abi () -> i32",
		"abi-major":         "it was built for version 2.0",
		"manifest-not-json": "manifest is not the JSON",
		"passive-data":      "data section at offset 0xdc: holds a passive segment",
	} {
		in := inspect(t, wat(t, guest))
		if len(in.Problems) == 0 || !strings.HasPrefix(in.Problems[0], want) {
			t.Errorf("%s: got problems %q, want %q", guest, in.Problems, want)
		}
	}
	if i := inspect(t, wat(t, "unknown-import")).Imports[0]; i.State != Unknown {
		t.Errorf("got import %+v", i)
	}
	if i := inspect(t, wat(t, "wrong-signature")).Imports[0]; i.State != Mistyped {
		t.Errorf("got import %+v", i)
	}
	if i := inspect(t, wat(t, "command")).Imports[0]; i.State != Served {
		t.Errorf("got import %+v", i)
	}
	denied := moduleOf(section(1, 1, 0x60, 1, 0x7f, 1, 0x7f), section(2, join([]byte{1, 22}, []byte(wasiModule), []byte{8}, []byte("fd_close"), []byte{0, 0})...))
	if i := inspect(t, denied).Imports[0]; i.State != Denied {
		t.Errorf("got import %+v", i)
	}
}

// TestInspectUndeclared has a manifest without the capability that the guest's code
// needs, in a custom section and in an export.
func TestInspectUndeclared(t *testing.T) {
	for module, want := range map[string]ImportState{
		string(manifested(t, "kept", "")): Undeclared, string(wat(t, "kept")): Served, string(wat(t, "functions")): Served,
	} {
		in, err := Inspect(t.Context(), []byte(module), PluginOptions{})
		if err != nil || len(in.Problems) > 0 {
			t.Fatal(err, in.Problems)
		}
		for _, i := range in.Imports {
			if got := i.State; i.Name == "kv_get" && got != want || i.Name == "map_get" && got != Served {
				t.Errorf("%s of %s is %s, want %s", i.Name, in.Manifest.Name, got, want)
			}
		}
	}
}
