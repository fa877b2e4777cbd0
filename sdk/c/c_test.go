package c

import (
	"os"
	"path/filepath"
	"testing"

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
	guest.Play(t, file, example(t, "json", "cpu-boost.json"))
}
