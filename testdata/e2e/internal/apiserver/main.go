// Command apiserver puts links to kube-apiserver and etcd into a directory, for tests of other modules. It builds those
// that the cache lacks.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/artifact"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: apiserver DIR")
		os.Exit(2)
	}
	ctx := context.Background()
	builder, err := artifact.NewBuilder(ctx)
	if err == nil {
		err = builder.Programs(ctx, os.Args[1], artifact.APIServer()...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		os.Exit(1)
	}
}
