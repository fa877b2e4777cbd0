package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	plugins "github.com/wasmproxy/wasmproxy/plugins-wasm"
)

// TestReadmeListsPlugins compares the list of bundled plugins with those in the program. The
// README stays short: all else is in docs.
func TestReadmeListsPlugins(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range plugins.All() {
		if row := "| [" + p.Name + "](plugins-wasm/" + p.Name + ") | "; !strings.Contains(string(readme), row) {
			t.Errorf("README.md has no row %q", row)
		}
	}
	if lines := strings.Count(string(readme), "\n"); lines > 120 {
		t.Errorf("README.md has %d lines", lines)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	apart   = regexp.MustCompile(`[^a-z0-9 _-]`) // what GitHub leaves out of a heading's anchor
)

// documents returns all Markdown files of the project.
func documents(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "../.." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) < 30 {
		t.Fatalf("found the documents %q, error %v", files, err)
	}
	return files
}

// TestLinks follows the links between the project's documents, to headings too.
func TestLinks(t *testing.T) {
	links := 0
	for _, document := range documents(t) {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			if err := leads(document, m[1]); err != nil {
				t.Errorf("%s: the link to %s: %v", document, m[1], err)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
}

// leads tells whether there is what a link in the document names.
func leads(document, to string) error {
	file, anchor, _ := strings.Cut(to, "#")
	path := document
	if file != "" {
		path = filepath.Join(filepath.Dir(document), file)
	}
	text, err := os.ReadFile(path)
	if anchor == "" || err != nil {
		_, err = os.Stat(path)
		return err
	}
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		name := apart.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(name, " ", "-") == anchor {
			return nil
		}
	}
	return os.ErrNotExist
}
