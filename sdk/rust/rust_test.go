package rust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/sdk/internal/guest"
)

const target = "wasm32-unknown-unknown"

// cargo runs cargo in this crate.
func cargo(t testing.TB, env []string, args ...string) (targetDir string) {
	t.Helper()
	return cargoIn(t, ".", env, args...)
}

// cargoIn runs cargo in a directory, and returns where it puts what it builds: beside the
// compiler in .cache, where it is warm the next time.
func cargoIn(t testing.TB, dir string, env []string, args ...string) (targetDir string) {
	t.Helper()
	command := guest.Compiler(t, "rust")
	targetDir = filepath.Join(filepath.Dir(filepath.Dir(command)), "target", "sdk")
	guest.Run(t, dir, append(env, "CARGO_TARGET_DIR="+targetDir), command, append(args, "--offline")...)
	return targetDir
}

// TestCrate runs the crate's own tests, those of its examples, and those of its
// documentation, one of which must not compile.
func TestCrate(t *testing.T) { cargo(t, nil, "test", "--quiet") }

// TestDoc takes no warning, and #![warn(missing_docs)] is one.
func TestDoc(t *testing.T) {
	cargo(t, []string{"RUSTDOCFLAGS=-Dwarnings"}, "doc", "--quiet", "--no-deps")
}

// TestGuests plays the fixtures of each example to the guest that it builds.
func TestGuests(t *testing.T) {
	dir := cargo(t, nil, "build", "--quiet", "--release", "--target", target, "--examples")
	fixtures, err := filepath.Glob("examples/testdata/*.json")
	if err != nil || len(fixtures) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range fixtures {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			guest.Play(t, filepath.Join(dir, target, "release", "examples", name+".wasm"), file)
		})
	}
}

// TestPanic shows that a panic says where it was.
func TestPanic(t *testing.T) {
	dir := cargo(t, nil, "build", "--quiet", "--release", "--target", target, "--example", "caller")
	fixture := filepath.Join(t.TempDir(), "panic.json")
	const text = `{"hook": "PreCreateContainer", "config": 1, "pod": {"namespace": "default", "labels": {"tier": "gold", "team": "a"}}, "container": {"name": "panic"}, "want": {"error": "panic: no way at examples/caller.rs:"}}`
	if err := os.WriteFile(fixture, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	guest.Play(t, filepath.Join(dir, target, "release", "examples", "caller.wasm"), fixture)
}

// TestReadme does what README.md says: tests and builds its plugin, and plays its
// fixture to it.
func TestReadme(t *testing.T) {
	sdk, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for file, language := range map[string]string{
		"Cargo.toml": "toml", ".cargo/config.toml": "toml", "src/lib.rs": "rust", "testdata/boost.json": "json",
	} {
		text := guest.Example(t, "README.md", "`"+file+"`", language)
		text = strings.Replace(text, `git = "https://github.com/wasmproxy/wasmproxy"`, `path = "`+sdk+`"`, 1)
		file = filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	cargoIn(t, dir, nil, "test", "--quiet")
	built := cargoIn(t, dir, nil, "build", "--quiet", "--release", "--target", target)
	guest.Play(t, filepath.Join(built, target, "release", "cpu_boost.wasm"), filepath.Join(dir, "testdata/boost.json"))
}

// TestFiles builds the crate from what the package carries of it.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, Files); err != nil {
		t.Fatal(err)
	}
	cargoIn(t, dir, nil, "build", "--quiet", "--lib", "--target", target)
}

// TestPlugins runs the tests of the stock plugins in Rust.
func TestPlugins(t *testing.T) {
	manifests, err := filepath.Glob("../../plugins-wasm/*/Cargo.toml")
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no plugins: %v", err)
	}
	for _, manifest := range manifests {
		t.Run(filepath.Base(filepath.Dir(manifest)), func(t *testing.T) {
			cargoIn(t, filepath.Dir(manifest), nil, "test", "--quiet")
		})
	}
}

// maxQoS is what the qos plugin may be in Rust, in bytes.
const maxQoS = 30 << 10

// TestSize keeps guests small. The qos plugin is 27 KB.
func TestSize(t *testing.T) {
	dir := cargo(t, nil, "build", "--quiet", "--release", "--target", target, "--example", "qos")
	info, err := os.Stat(filepath.Join(dir, target, "release", "examples", "qos.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("qos.wasm: %d bytes", info.Size()); info.Size() > maxQoS {
		t.Errorf("qos.wasm has %d bytes, want at most %d", info.Size(), maxQoS)
	}
}
