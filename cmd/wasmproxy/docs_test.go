package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/runtime/config"
)

// pages returns the documents for people who use or change the project.
func pages(t *testing.T) []string {
	t.Helper()
	inDocs, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(inDocs) < 8 {
		t.Fatalf("docs has the pages %q, error %v", inDocs, err)
	}
	return append(inDocs, "../../README.md", "../../CONTRIBUTING.md", "../../SECURITY.md", "../../CHANGELOG.md")
}

// TestDocumentCommands runs the commands of the documents, page by page, in an empty
// directory and without a network. The word after ``` says how:
//
//	sh              is run; a text block after it is what it prints
//	text FILE       is that file of testdata, which another test makes
//	sh node         needs a node: only command names and flags of wasmproxy are checked
//	sh checkout     has targets of the Makefile
//	yaml settings   is a file for --config
//	yaml prometheus is a part of Prometheus' configuration
//	yaml kustomization is a kustomization, which testdata/e2e/internal/manifests builds
//	yaml kubeadm    gives kubeadm the proxy's endpoint; k3s and nodeadm are the same for theirs
//	yaml manifest   is an object, which testdata/e2e/suite gives to an API server
//	yaml values     is of Helm; with the other files of docs/fleet.md, fleet/cluster uses it
//	go main.go      takes the place of the main.go that the block before has made
//
// TestTutorial does the same for the tutorial.
func TestDocumentCommands(t *testing.T) {
	path, cache := program(t)+":"+os.Getenv("PATH"), t.TempDir()
	for _, page := range pages(t) {
		if page == tutorial {
			continue
		}
		t.Run(filepath.Base(page), func(t *testing.T) {
			r := newReader(t, path)
			for _, b := range readBlocks(t, page) {
				r.check(t, b, cache)
			}
		})
	}
}

func (r *reader) check(t *testing.T, b block, cache string) {
	t.Helper()
	switch kind := strings.Join(append([]string{b.language}, b.words...), " "); kind {
	case "sh":
		r.paste(t, b.text)
	case "text":
		r.follow(t, b)
	case "sh node", "ini":
		for line := range strings.Lines(b.text) {
			checkLine(t, strings.TrimPrefix(line, "ExecStart="))
		}
	case "sh checkout":
		makeTargets(t, b.text, cache)
	case "yaml settings":
		r.settings(t, b.text)
	case "yaml kubeadm":
		namesProxy(t, b.text, "nodeRegistration", "criSocket")
	case "yaml nodeadm":
		namesProxy(t, b.text, "spec", "kubelet", "config", "containerRuntimeEndpoint")
	case "yaml k3s":
		namesProxy(t, strings.Replace(b.text, "- container-runtime-endpoint=", "  container-runtime-endpoint: ", 1), "kubelet-arg", "container-runtime-endpoint")
	case "yaml manifest":
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(b.text), &object); err != nil || object["kind"] == nil || object["metadata"] == nil {
			t.Errorf("error %v, or no object:\n%s", err, b.text)
		}
	case "yaml kustomization":
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(b.text), &object); err != nil || object["kind"] != "Kustomization" || object["resources"] == nil {
			t.Errorf("error %v, or no kustomization:\n%s", err, b.text)
		}
	case "yaml prometheus":
		var jobs struct {
			Scrape []struct {
				Name string `json:"job_name"`
			} `json:"scrape_configs"`
		}
		if err := yaml.UnmarshalStrict([]byte(b.text), &map[string]any{}); err != nil || yaml.Unmarshal([]byte(b.text), &jobs) != nil || len(jobs.Scrape) == 0 || jobs.Scrape[0].Name == "" {
			t.Errorf("error %v, or no job:\n%s", err, b.text)
		}
	case "go main.go":
		source := "package main\n\nimport wp \"github.com/wasmproxy/wasmproxy/sdk\"\n\nfunc main() {}\n\n" + b.text
		if err := os.WriteFile(filepath.Join(r.dir, "main.go"), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
		r.paste(t, "wasmproxy plugin build")
	case "diff", "mermaid": // the first is shown in CONTRIBUTING.md, by the one who made the change
	case "yaml trust", "yaml mirrors", "yaml values": // fleet/cluster reads them
	default:
		if file, ok := strings.CutPrefix(kind, "text "); ok {
			if want, err := os.ReadFile(filepath.Join("testdata", file)); err != nil || string(want) != b.text {
				t.Errorf("the block %s is not the file, error %v", file, err)
			}
			return
		}
		if b.language != "json" { // which runtime/registry reads
			t.Errorf("a block of %q that nothing checks:\n%s", kind, b.text)
		}
	}
}

// namesProxy requires that each document has the proxy's endpoint under these keys.
func namesProxy(t *testing.T, text string, keys ...string) {
	t.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		var at any
		if err := yaml.UnmarshalStrict([]byte(document), &at); err != nil {
			t.Error(err)
		}
		for _, key := range keys {
			object, _ := at.(map[string]any)
			at = object[key]
		}
		if at != config.Default().Listen {
			t.Errorf("%s is %v, not the proxy's endpoint:\n%s", strings.Join(keys, "."), at, document)
		}
	}
}

// settings has validate read the file. Directories of the node are replaced by empty ones.
func (r *reader) settings(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "settings.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r.paste(t, `wasmproxy validate --config settings.yaml --plugin-dir "$PWD/none" --hook-dir "" --cache-dir "" --cgroup-root ""`)
}

// harmless are the targets that need nothing but Go.
var harmless = []string{"build", "demo", "help"}

// makeTargets runs the harmless ones, and has make look up the others.
func makeTargets(t *testing.T, text, cache string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) != 2 || words[0] != "make" {
			t.Errorf("%q is not a target of the Makefile", line)
			continue
		}
		args := []string{"-C", "../..", words[1], "CACHE=" + cache}
		if !slices.Contains(harmless, words[1]) {
			args = append(args, "-n")
		}
		cmd := exec.CommandContext(t.Context(), "make", args...)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") })
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}

var (
	aside    = regexp.MustCompile("`(wasmproxy [^`]*)`|(?m:^(wasmproxy (?:bypass|demo|doctor|explain|koord|plugin|serve|status|validate) .*)$)")
	comment  = regexp.MustCompile(`(^|\s)#\s.*`)
	sequence = regexp.MustCompile(`&&|[|;&\n]`)
)

// TestCommandsInText checks the names and flags of commands in all documents, within a
// sentence or a table and on a line of their own.
func TestCommandsInText(t *testing.T) {
	found := 0
	for _, document := range documents(t) {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range aside.FindAllSubmatch(text, -1) {
			found++
			checkLine(t, string(m[1])+string(m[2]))
		}
	}
	if found < 30 {
		t.Errorf("only %d commands were found", found)
	}
}

// checkLine asks for the help of each command of the program in a line of the shell, which
// parses its flags.
func checkLine(t *testing.T, line string) {
	t.Helper()
	for _, part := range sequence.Split(comment.ReplaceAllString(line, ""), -1) {
		words := strings.Fields(part)
		if len(words) == 0 || filepath.Base(words[0]) != "wasmproxy" {
			continue
		}
		names := 2
		if len(words) > 2 && slices.Contains([]string{"bypass", "host", "plugin"}, words[1]) {
			names = 3
		}
		names = min(names, len(words))
		name := strings.Join(words[1:names], " ")
		var out, errs bytes.Buffer
		code := run(t.Context(), newRoot(""), slices.Concat(words[1:names], []string{"--help"}, words[names:]), &out, &errs)
		if code != exitOK || !strings.Contains(out.String(), "wasmproxy "+name) {
			t.Errorf("%s: exit code %d, %s", strings.TrimSpace(part), code, errs.String())
		}
	}
}

// TestSettingsTable holds the table of settings to the program's flags, both ways.
func TestSettingsTable(t *testing.T) {
	documented := map[string]string{}
	for _, row := range tableAfter(t, "../../docs/configuration.md", "## Settings") {
		documented[strings.Trim(row[0], "`")] = strings.Trim(row[1], "`")
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Flags(flags)
	have := map[string]string{}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name != config.FileFlag {
			have[f.Name] = strings.TrimSuffix(f.DefValue, "0s") // 4m0s is 4m
		}
	})
	if !maps.Equal(documented, have) {
		t.Errorf("docs/configuration.md has the settings and defaults\n%q\nthe program has\n%q", documented, have)
	}
}

// TestDocumentedPackages compares the folders of runtime with those in docs/architecture.md, both ways.
func TestDocumentedPackages(t *testing.T) {
	var documented []string
	for _, row := range tableAfter(t, "../../docs/architecture.md", "## Packages") {
		for _, name := range strings.Split(row[0], ", ") {
			if strings.HasPrefix(name, "runtime/") {
				documented = append(documented, "../../"+name)
			}
		}
	}
	folders, err := filepath.Glob("../../runtime/*")
	if err != nil {
		t.Fatal(err)
	}
	folders = slices.DeleteFunc(folders, func(f string) bool { return filepath.Ext(f) != "" })
	slices.Sort(documented)
	if !slices.Equal(documented, folders) {
		t.Errorf("docs/architecture.md has the packages %q, the project has %q", documented, folders)
	}
}

// tableAfter returns the cells of the first table after a heading, without its head.
func tableAfter(t *testing.T, file, heading string) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "\n"+heading+"\n")
	for line := range strings.Lines(after) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), " |") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("%s has no table after %q", file, heading)
	}
	return rows[2:]
}

// What a sentence of a document may have, in words.
const (
	longest = 45
	usual   = 30 // nine of ten sentences of the pages have at most that
)

// TestSentences counts words of prose, not of tables and blocks. Code is one word.
func TestSentences(t *testing.T) {
	var lengths []int
	for _, document := range documents(t) {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, sentence := range sentences(string(text)) {
			n := len(strings.Fields(sentence))
			if n > longest {
				t.Errorf("%s: a sentence has %d words: %s", document, n, sentence)
			}
			if slices.Contains(pages(t), document) {
				lengths = append(lengths, n)
			}
		}
	}
	slices.Sort(lengths)
	if len(lengths) < 300 || lengths[len(lengths)*9/10] > usual {
		t.Errorf("of %d sentences, one of ten has %d words or more; want at most %d", len(lengths), lengths[len(lengths)*9/10], usual)
	}
}

var (
	block3    = regexp.MustCompile("(?ms)^```.*?^```$")
	noProse   = regexp.MustCompile(`(?m)^\s*(\||#|<!--).*$|^ {4}.*$`)
	inlined   = regexp.MustCompile("`[^`]*`")
	linked    = regexp.MustCompile(`\]\([^)]*\)`)
	paragraph = regexp.MustCompile(`\n\s*\n|\n\s*(?:[-*]|\d+\.) `)
	full      = regexp.MustCompile(`[.!?]["*)]*\s+`)
)

func sentences(text string) (all []string) {
	text = block3.ReplaceAllString(text, "\n")
	text = noProse.ReplaceAllString(text, "")
	text = linked.ReplaceAllString(inlined.ReplaceAllString(text, "code"), "]")
	for _, p := range paragraph.Split(text, -1) {
		all = append(all, full.Split(strings.TrimSpace(p), -1)...)
	}
	return all
}
