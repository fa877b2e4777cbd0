package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/wasmproxy/wasmproxy/runtime/host"
)

var pagesDir = flag.String("pages", "", "directory in which TestPages leaves the manual pages and shell completions, for packages")

// TestPages makes a manual page of each command that is not hidden, and completions for three
// shells. It is how `make dist` makes them: the program needs no code for it.
func TestPages(t *testing.T) {
	dir := *pagesDir
	if dir == "" {
		dir = t.TempDir()
	}
	root := newRoot(host.SettingsFile)
	root.DisableAutoGenTag = true
	for _, sub := range []string{"man", "completions"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "wasmproxy", Manual: "wasmproxy"}, filepath.Join(dir, "man")); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(string) error{
		"wasmproxy.bash": func(file string) error { return root.GenBashCompletionFileV2(file, true) },
		"_wasmproxy":     root.GenZshCompletionFile,
		"wasmproxy.fish": func(file string) error { return root.GenFishCompletionFile(file, true) },
	} {
		if err := make(filepath.Join(dir, "completions", name)); err != nil {
			t.Error(err)
		}
	}
	checkPages(t, root, filepath.Join(dir, "man"))
}

// checkPages requires that each command's page has its flags.
func checkPages(t *testing.T, cmd *cobra.Command, dir string) {
	t.Helper()
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	page, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Error(err)
		return
	}
	if !strings.Contains(string(page), cmd.Short) {
		t.Errorf("%s does not have %q", name, cmd.Short)
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			checkPages(t, sub, dir)
		}
	}
}
