// Package scaffold writes the source of a new plugin: one that works, with a fixture
// and a Pod to try it on, and the SDK that it is built with beside it, so that it
// builds without a network.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy"
)

var langs = []string{"c", "go", "rust", "tinygo"}

// Langs returns the languages that there are templates for.
func Langs() []string { return slices.Clone(langs) }

// kind is a template: what the plugin is to do.
type kind struct {
	name  string
	what  string // the plugin does
	event string // how plugin run tries it
}

// Default is the template without a choice.
const Default = "boost"

// kinds are in template/kind.
var kinds = []kind{
	{Default, "doubles the CPU quota of pods with the annotation `example.com/boost: 2x`", "--hook PreCreateContainer --event pod.yaml"},
	{"control-loop", "lets containers that wait for CPU time save and spend quota: a control loop", "--event testdata/tick.json"},
	{"inject", "gives containers of pods with the annotation `example.com/node-certs: \"true\"` the node's CA certificates", "--hook PreCreateContainer --event pod.yaml"},
	{"policy", "refuses pods without the labels that its configuration names", "--hook PreRunPodSandbox --event pod.yaml"},
}

// Templates returns the names of the templates.
func Templates() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// CheckTemplate says why there is no such template.
func CheckTemplate(template string) error {
	if !slices.Contains(Templates(), template) {
		return fmt.Errorf("unknown template %q; the templates are %s", template, strings.Join(Templates(), ", "))
	}
	return nil
}

//go:embed template
var templates embed.FS

// names are those that files, crates and manifests take alike.
var names = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

const maxName = 40

// CheckName says what is wrong with the name of a plugin.
func CheckName(name string) error {
	if !names.MatchString(name) || len(name) > maxName {
		return fmt.Errorf("the name %q is not 1 to %d small letters, digits and single - between them", name, maxName)
	}
	if name == "wasmproxy" {
		return fmt.Errorf("the name %q is that of the SDK", name)
	}
	return nil
}

// Write writes the plugin into dir, which must be empty or not there.
func Write(dir, name, lang, template string) error {
	if err := errors.Join(CheckName(name), CheckTemplate(template)); err != nil {
		return err
	}
	if found, err := os.ReadDir(dir); err == nil && len(found) > 0 {
		return fmt.Errorf("%s is not empty", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	k := kinds[slices.Index(Templates(), template)]
	fill := strings.NewReplacer(
		"{{name}}", name, "{{crate}}", strings.ReplaceAll(name, "-", "_"), "{{lang}}", lang, "{{what}}", k.what, "{{event}}", k.event,
	)
	source := lang
	if lang == "tinygo" { // the same source
		source = "go"
	}
	w := &writer{dir: dir}
	for _, root := range []string{"template/all", "template/" + source, "template/kind/" + template + "/all", "template/kind/" + template + "/" + source} {
		// A template's name ends in .tmpl, so that no tool takes it for what it is to become; nor do names begin with a dot,
		// which embed passes over.
		w.each(templates, root, func(file string, content []byte) {
			file = strings.TrimSuffix(strings.TrimPrefix(file, root+"/"), ".tmpl")
			switch top, _, _ := strings.Cut(file, "/"); top {
			case "gitignore", "cargo":
				file = "." + file
			case "plugin.json":
				file = name + ".json"
			}
			w.write(file, []byte(fill.Replace(string(content))))
		})
	}
	w.sdk(source)
	return w.err
}

// writer writes files until one fails.
type writer struct {
	dir string
	err error
}

func (w *writer) write(name string, content []byte) {
	if w.err != nil {
		return
	}
	path := filepath.Join(w.dir, filepath.FromSlash(name))
	if w.err = os.MkdirAll(filepath.Dir(path), 0o755); w.err == nil {
		w.err = os.WriteFile(path, content, 0o644)
	}
}

// each calls f with every file of a tree.
func (w *writer) each(tree fs.FS, root string, f func(name string, content []byte)) {
	if w.err != nil {
		return
	}
	w.err = fs.WalkDir(tree, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(tree, name)
		if err == nil {
			f(name, b)
		}
		return err
	})
}

// sdk writes the SDK of a language.
func (w *writer) sdk(lang string) {
	switch lang {
	case "go":
		for _, dir := range []string{"abi", "sdk"} {
			w.each(wasmproxy.SDK, dir, func(name string, content []byte) {
				if path.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go") && name != "abi/host.go" {
					w.write("wasmproxy/"+name, content)
				}
			})
		}
	case "rust":
		w.each(wasmproxy.SDK, "sdk/rust", func(name string, content []byte) {
			if path.Base(name) == "Cargo.toml" {
				blocks := slices.DeleteFunc(strings.Split(string(content), "\n\n"), func(b string) bool {
					return strings.Contains(b, "[[example]]") // whose sources stay behind
				})
				content = []byte(strings.Join(blocks, "\n\n"))
			}
			w.write("wasmproxy/"+strings.TrimPrefix(name, "sdk/rust/"), content)
		})
	case "c":
		w.each(wasmproxy.SDK, "sdk/c", func(name string, content []byte) { w.write(path.Base(name), content) })
		return
	}
	license, err := wasmproxy.SDK.ReadFile("LICENSE")
	w.write("wasmproxy/LICENSE", license)
	w.err = errors.Join(w.err, err)
}
