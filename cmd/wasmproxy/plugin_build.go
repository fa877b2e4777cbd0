package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// builder compiles a plugin's directory.
type builder struct {
	dir, out     string
	lang, target string
	debug        bool // keep the names of functions
	online       bool // cargo may fetch crates
}

func buildCommand() *cobra.Command {
	var b builder
	cmd := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Compile a plugin to WebAssembly, and inspect the result",
		Long: `The language is that of --lang, or of wasmproxy.json, or what the files of DIR look like:
Cargo.toml is Rust, a Go file TinyGo or else Go, a .c file C. Compilers are looked for on
PATH; the one that is missing is named. The commands are those of the SDKs' manuals, and
are printed. Where only a function of the module tells the manifest, as with Go and TinyGo,
the manifest is written into the module, too: the proxy can then read it of a module that
it cannot load.

With --debug the module keeps the names of its functions. plugin test and run, and the proxy's
log, then say in which a trap was, and which have called it.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if b.dir = "."; len(args) > 0 {
				b.dir = args[0]
			}
			return b.build(cmd)
		},
	}
	cmd.Flags().StringVar(&b.lang, "lang", "", "language: "+strings.Join(buildable(), ", ")+" (default: that of the files)")
	cmd.Flags().StringVarP(&b.out, "output", "o", "", "file to write (default: DIR/NAME.wasm, NAME being that of DIR)")
	cmd.Flags().BoolVar(&b.debug, "debug", false, "keep the names of functions, so that a trap tells where it was; the module is larger")
	cmd.Flags().BoolVar(&b.online, "online", false, "let cargo fetch crates that Cargo.toml names and this machine lacks")
	cmd.Flags().StringVar(&b.target, "tinygo-target", "wasip1", "TinyGo's target, or a file that describes one")
	return cmd
}

// compiler is how a language is built.
type compiler struct {
	lang    string
	program string
	get     string // where it comes from
	env     []string
	args    func(b *builder) ([]string, error)
	probe   []string // a command that compiles an empty source on stdin, and fails if WebAssembly is not among the targets
}

// compilers have the commands of the SDKs' manuals. Go and TinyGo always have WebAssembly.
var compilers = []compiler{
	{
		"c", "clang", "install clang and lld, 16 or newer, such as Debian's packages clang and lld", nil, (*builder).clang,
		[]string{"clang", "--target=wasm32", "-nostdlib", "-Wl,--no-entry", "-o", "probe.wasm", "-x", "c", "-"},
	},
	{"go", "go", "get it from https://go.dev/dl", []string{"GOOS=wasip1", "GOARCH=wasm", "GOWORK=off"}, (*builder).golang, nil},
	{
		"rust", "cargo", "get it from https://rustup.rs, and then run: rustup target add wasm32-unknown-unknown", nil, (*builder).cargo,
		[]string{"rustc", "--target", rustTarget, "--crate-type", "lib", "--emit", "metadata", "-"},
	},
	{"tinygo", "tinygo", "get it from https://tinygo.org/getting-started/install, or build with standard Go: --lang go", []string{"GOWORK=off"}, (*builder).tinygo, nil},
}

// lacksWasm reports whether the compiler fails to compile even an empty source to
// WebAssembly, so that the plugin's own source is not what is wrong.
func (c compiler) lacksWasm(ctx context.Context) bool {
	if c.probe == nil {
		return false
	}
	dir, err := os.MkdirTemp("", "wasmproxy-build-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	run := exec.CommandContext(ctx, c.probe[0], c.probe[1:]...)
	run.Dir = dir
	return run.Run() != nil && ctx.Err() == nil
}

func buildable() []string {
	return texts(compilers, func(c compiler) string { return c.lang })
}

func (b *builder) golang() ([]string, error) {
	return slices.Concat([]string{"build", "-buildmode=c-shared", "-trimpath"}, b.stripped("-ldflags=-s -w"), []string{"-o", b.out, "."}), nil
}

func (b *builder) tinygo() ([]string, error) {
	args := []string{"build", "-target=" + b.target, "-buildmode=c-shared", "-scheduler=none", "-opt=z"}
	return slices.Concat(args, b.stripped("-no-debug"), []string{"-o", b.out, "."}), nil
}

// cargo's result goes to a directory of its own, from where it is copied.
func (b *builder) cargo() ([]string, error) {
	args := []string{"build", "--release", "--target", rustTarget, "--target-dir", "target"}
	if !b.online {
		args = append(args, "--offline")
	}
	if b.debug {
		args = append(args, "--config", "profile.release.strip=false")
	}
	return args, nil
}

const rustTarget = "wasm32-unknown-unknown"

func (b *builder) clang() ([]string, error) {
	sources, err := fs.Glob(os.DirFS(b.dir), "*.c")
	if err != nil {
		return nil, err
	}
	optimized := []string{"-Oz", "-Wl,--strip-all"}
	if b.debug { // clang runs wasm-opt with any other level, where it is there, and that drops the names
		optimized = []string{"-O0"}
	}
	return slices.Concat([]string{
		"--target=wasm32", "-mbulk-memory", "-Wall", "-Wextra", "-nostdlib", "-ffreestanding", "-Wl,--no-entry", "-o", b.out,
	}, optimized, sources), nil
}

// stripped is the option that leaves out the names of functions, unless they are to stay.
func (b *builder) stripped(option string) []string {
	if b.debug {
		return nil
	}
	return []string{option}
}

func (b *builder) build(cmd *cobra.Command) error {
	var err error
	if b.dir, err = filepath.Abs(b.dir); err != nil { // compilers run elsewhere, so all paths are absolute
		return err
	}
	if info, err := os.Stat(b.dir); err != nil {
		return err
	} else if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", b.dir)
	}
	if b.out == "" {
		b.out = filepath.Join(b.dir, filepath.Base(b.dir)+".wasm")
	}
	if b.out, err = filepath.Abs(b.out); err != nil {
		return err
	}
	if filepath.Ext(b.target) == ".json" { // a file, which is looked for where the command is given
		if b.target, err = filepath.Abs(b.target); err != nil {
			return err
		}
	}
	if b.lang == "" {
		if b.lang, err = detect(b.dir); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(compilers, func(c compiler) bool { return c.lang == b.lang })
	if i < 0 {
		return unknownLanguage(b.lang, buildable())
	}
	if err := b.compile(cmd, compilers[i]); err != nil {
		return err
	}
	module, err := os.ReadFile(b.out)
	if err != nil {
		return err
	}
	in, err := wasm.Inspect(cmd.Context(), module, wasm.PluginOptions{}) // what is wrong with the module is for inspect to say
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.out, in.Embed(module), 0o644); err != nil { // with the manifest, if only a function of the module tells it
		return err
	}
	return inspect(cmd, b.out, "text")
}

// compile runs the compiler in the plugin's directory.
func (b *builder) compile(cmd *cobra.Command, c compiler) error {
	program, err := exec.LookPath(c.program)
	if err != nil {
		return fmt.Errorf("%s needs %s, which is not on PATH: %s", c.lang, c.program, c.get)
	}
	args, err := c.args(b)
	if err != nil {
		return err
	}
	quoted := texts(args, func(arg string) string {
		if strings.Contains(arg, " ") {
			return "'" + arg + "'"
		}
		return arg
	})
	built := filepath.Join(b.dir, "target", rustTarget, "release")
	if c.lang == "rust" { // a module may be there of a crate that had another name
		before, err := filesIn(built, "*.wasm")
		for _, path := range before {
			err = errors.Join(err, os.Remove(path))
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(cmd.OutOrStdout(), printable(strings.Join(slices.Concat(c.env, []string{c.program}, quoted), " ")))
	run := exec.CommandContext(cmd.Context(), program, args...)
	run.Dir, run.Env = b.dir, append(os.Environ(), c.env...)
	run.Stdout, run.Stderr = cmd.ErrOrStderr(), cmd.ErrOrStderr()
	if err := run.Run(); err != nil {
		if c.lacksWasm(cmd.Context()) {
			return fmt.Errorf("%s: %w: it cannot compile to WebAssembly: %s", c.program, err, c.get)
		}
		return fmt.Errorf("%s: %w", c.program, err)
	}
	if c.lang != "rust" {
		return nil
	}
	found, err := filesIn(built, "*.wasm") // what cargo built is a crate's only module
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("%s has %d .wasm files instead of one; Cargo.toml needs crate-type = [\"cdylib\"]", built, len(found))
	}
	module, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	return regular.Replace(b.out, module, 0o644)
}

// detect finds out a plugin's language.
func detect(dir string) (string, error) {
	path := filepath.Join(dir, "wasmproxy.json")
	text, err := os.ReadFile(path)
	if err == nil {
		var file struct {
			Lang string `json:"lang"`
		}
		if err := json.Unmarshal(text, &file); err != nil {
			return "", fmt.Errorf("%s: %w", path, err)
		}
		if !slices.Contains(buildable(), file.Lang) {
			return "", fmt.Errorf("%s: lang: unknown language %q; the languages are %s", path, file.Lang, strings.Join(buildable(), ", "))
		}
		return file.Lang, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	for _, kind := range []struct{ pattern, lang string }{{"Cargo.toml", "rust"}, {"*.go", "go"}, {"*.c", "c"}} {
		found, err := filesIn(dir, kind.pattern)
		if err != nil {
			return "", err
		}
		if len(found) == 0 {
			continue
		}
		if _, err := exec.LookPath("tinygo"); kind.lang == "go" && err == nil { // its plugins are a hundredth the size
			return "tinygo", nil
		}
		return kind.lang, nil
	}
	return "", fmt.Errorf("%s has neither Cargo.toml nor .go nor .c files: name the language with --lang", dir)
}
