package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

func pluginCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "plugin", Short: "Look at plugins"}
	cmd.AddCommand(inspectCommand())
	return cmd
}

func inspectCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect FILE",
		Short: "Print what a .wasm plugin is, wants and imports, and what keeps it from loading",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			module, err := readModule(args[0])
			if err != nil {
				return err
			}
			in, err := wasm.Inspect(cmd.Context(), module)
			if err != nil {
				return fmt.Errorf("inspecting %s: %w", args[0], err)
			}
			if err := printInspection(cmd.OutOrStdout(), in); err != nil {
				return err
			}
			if len(in.Problems) > 0 {
				return fmt.Errorf("%s would not load: %s", args[0], strings.Join(in.Problems, "; "))
			}
			return nil
		},
	}
}

// readModule reads at most a byte more than any module may have, so that a
// wrong file, or one without an end, is told from a plugin.
func readModule(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, wasm.MaxModule+1))
}

func printInspection(out io.Writer, in wasm.Inspection) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(key, format string, args ...any) { fmt.Fprintf(w, "%s\t%s\n", key, fmt.Sprintf(format, args...)) }
	row("name", "%s %s", in.Manifest.Name, in.Manifest.Version)
	if in.Manifest.Description != "" {
		row("description", "%s", in.Manifest.Description)
	}
	row("hooks", "%s", strings.Join(in.Manifest.Hooks, ", "))
	if in.ABI != 0 {
		row("abi", "%s, version %d.%d", abi.Module, in.ABI>>16, in.ABI&0xffff)
	}
	row("manifest", "from the %s", in.ManifestSource)
	row("size", "%d bytes", in.Size)
	row("sha256", "%s", in.SHA256)
	row("memory", "%s", memory(in))
	for _, s := range in.Sections {
		row("section", "%s, %d bytes", s.Name, s.Size)
	}
	for _, i := range in.Imports {
		row("import", "%s.%s %s: %s", i.Module, i.Name, i.Type, i.State)
	}
	for _, name := range in.Exports {
		row("export", "%s", name)
	}
	for _, p := range in.Problems {
		row("problem", "%s", p)
	}
	return w.Flush()
}

func memory(in wasm.Inspection) string {
	if in.MemoryMax == 0 {
		return fmt.Sprintf("%d KiB, no maximum of its own", uint64(in.MemoryMin)*64)
	}
	return fmt.Sprintf("%d KiB, at most %d KiB", uint64(in.MemoryMin)*64, uint64(in.MemoryMax)*64)
}
