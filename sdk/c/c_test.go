package c

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/internal/guest"
)

// compile runs clang with the flags that README.md names.
func compile(t *testing.T, args ...string) {
	t.Helper()
	flags := []string{"--target=wasm32", "-mbulk-memory", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-I."}
	guest.Run(t, ".", nil, guest.Compiler(t, "clang"), append(flags, args...)...)
}

// build makes a guest of a source and returns its file.
func build(t *testing.T, source string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guest.wasm")
	compile(t, "-Oz", "-nostdlib", "-Wl,--no-entry", "-Wl,--strip-all", "-o", file, source)
	return file
}

// example writes the block of README.md that is in this language to a file.
func example(t *testing.T, language, name string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(guest.Example(t, "README.md", name, language)), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestHeader compiles every helper in each language that the header is for.
func TestHeader(t *testing.T) {
	for _, language := range [][]string{
		{"-std=c99", "-pedantic"}, {"-std=c23"}, {"-std=c++11", "-x", "c++"}, {"-std=c++20", "-x", "c++"},
	} {
		t.Run(language[0], func(t *testing.T) {
			compile(t, append(language, "-fsyntax-only", "testdata/helpers.c", "testdata/library.c")...)
		})
	}
}

func TestHelpers(t *testing.T) {
	guest.Play(t, build(t, "testdata/helpers.c"), "testdata/helpers.json")
}

// version finds the version of another SDK in its source.
func version(t *testing.T, source string) string {
	t.Helper()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^(?:const )?version = "(.*)"$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has no version", source)
	}
	return string(found[1])
}

// The SDKs have one version.
func TestVersion(t *testing.T) {
	if inGo, inRust := version(t, "../manifest.go"), version(t, "../rust/Cargo.toml"); inGo != inRust {
		t.Errorf("Go's SDK is of version %s, Rust's of %s", inGo, inRust)
	}
}

// maxExample is what README.md promises of its example, in bytes.
const maxExample = 2 << 10

func TestReadme(t *testing.T) {
	file := build(t, example(t, "c", "cpu-boost.c"))
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d bytes", info.Size()); info.Size() > maxExample {
		t.Errorf("the example has %d bytes, want at most %d", info.Size(), maxExample)
	}
	module, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := wasm.StaticManifest(module); !ok || m.SDK != "c "+version(t, "../manifest.go") {
		t.Errorf("the manifest says SDK %q, %v", m.SDK, ok)
	}
	guest.Play(t, file, example(t, "json", "cpu-boost.json"))
}
