package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/abi"
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
				version, abi.Module, abi.Minor, dependency("github.com/tetratelabs/wazero"),
				runtime.Version(), runtime.GOOS, runtime.GOARCH)
		},
	}
}

// dependency is the version of a module that the program was built with.
func dependency(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
}
