package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	plugins "github.com/wasmproxy/wasmproxy/plugins-wasm"
)

// TestReadmeListsPlugins holds the list of plugins that come with the program to what does.
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
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	apart   = regexp.MustCompile(`[^a-z0-9 _-]`) // what GitHub leaves out of a heading's anchor
)

// TestLinks follows the links between the project's documents, to headings too.
func TestLinks(t *testing.T) {
	var documents []string
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md", "*/*/*/*.md"} {
		found, err := filepath.Glob("../../" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, found...)
	}
	links := 0
	for _, document := range documents {
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
