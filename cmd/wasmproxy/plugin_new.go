package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/cmd/wasmproxy/scaffold"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func newCommand() *cobra.Command {
	var lang, template string
	cmd := &cobra.Command{
		Use:   "new --lang " + strings.Join(scaffold.Langs(), "|") + " [--template " + strings.Join(scaffold.Templates(), "|") + "] NAME",
		Short: "Write the source of a plugin that works, to begin with",
		Long: `NAME is a directory, which must be empty or not there; its last element is the plugin's
name. Beside the source it gets fixtures, a Pod, a README, and the SDK that the plugin is
built with, so that nothing is fetched from anywhere.

The templates are

  boost         doubles the CPU quota of pods that ask for it
  control-loop  looks at all containers every ten seconds, and sets a cgroup file
  inject        gives containers a mount and a variable
  policy        refuses pods, by its configuration`,
		Example: `  wasmproxy plugin new --lang tinygo cpu-boost
  cd cpu-boost
  wasmproxy plugin build && wasmproxy plugin test
  wasmproxy plugin run cpu-boost.wasm --hook PreCreateContainer --event pod.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains(scaffold.Langs(), lang) {
				return unknownLanguage(lang, scaffold.Langs())
			}
			if err := scaffold.CheckTemplate(template); err != nil {
				return wrongUsage("--template: %v", err)
			}
			dir := filepath.Clean(args[0])
			if err := scaffold.CheckName(filepath.Base(dir)); err != nil {
				return coded{err, exitUsage}
			}
			if err := scaffold.Write(dir, filepath.Base(dir), lang, template); err != nil {
				return fmt.Errorf("new plugin: %w", err)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is a plugin in %s; its README.md says what to do next\n", plugin.Name(dir), lang)
			return err
		},
	}
	cmd.Flags().StringVar(&lang, "lang", "", "language: "+strings.Join(scaffold.Langs(), ", "))
	cmd.Flags().StringVar(&template, "template", scaffold.Default, "what the plugin does: "+strings.Join(scaffold.Templates(), ", "))
	return cmd
}

func unknownLanguage(lang string, known []string) error {
	return wrongUsage("--lang: unknown language %q; the languages are %s", lang, strings.Join(known, ", "))
}
