// Command programs puts links to programs of other projects into a directory, for tests of other modules. It builds those that the
// cache lacks.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: programs DIR NAME...")
		os.Exit(2)
	}
	if err := link(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(1)
	}
}

func link(ctx context.Context, dir string, names []string) error {
	known := map[string]artifact.Program{}
	for _, p := range append(artifact.APIServer(), artifact.Cosign, artifact.Kubectl(), artifact.Registry, artifact.ControllerManager()) {
		known[p.Name] = p
	}
	builder, err := artifact.NewBuilder(ctx)
	if err != nil {
		return err
	}
	var programs []artifact.Program
	for _, name := range names {
		p, ok := known[name]
		switch {
		case ok:
			programs = append(programs, p)
		case name == "prometheus": // with promtool
			if err := builder.Prometheus(ctx, dir); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q is not a program that tests of other modules use", name)
		}
	}
	return builder.Programs(ctx, dir, programs...)
}
