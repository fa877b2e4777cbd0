package main

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// version is set by the build: -ldflags "-X main.version=v1.2.3".
var version = "development"

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of the program, its plugin ABI, wazero and Go",
		Args:  noArguments,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintf(cmd.OutOrStdout(), "wasmproxy %s\nplugin ABI %s.%d\nwazero %s\n%s %s/%s\n",
				version, abi.Module, abi.Minor, cmp.Or(wasm.WazeroVersion(), "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}
