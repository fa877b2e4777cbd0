package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/abi/group"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
	"github.com/wasmproxy/wasmproxy/sdk/conformance"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

func abiCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "abi",
		Short: "Test hosts of the plugin ABI",
		Long: `  test  has a host, which is any command, take the tests of the ABI
  host  is such a host: the engine of this program

abi/CONFORMANCE.md of wasmproxy has the form of tests and outcomes.`,
		Args: noSuchCommand,
		RunE: showHelp,
	}
	cmd.AddCommand(abiTestCommand(), abiHostCommand())
	return cmd
}

// abiTestHelp is the long help of abi test.
const abiTestHelp = `HOST is a command. It reads one test a line, in JSON, and writes one outcome a line;
abi/CONFORMANCE.md of wasmproxy has the form. The tests and their modules are in this program.
The report is by group.

A host passes if it passes the whole core. Of an optional group it may say that it does not
support it. Exit codes: 0 the core passed, 1 it did not, or the host hung, ended early or wrote
what is no outcome.`

func abiTestCommand() *cobra.Command {
	var host conformance.Host
	cmd := &cobra.Command{
		Use:   "test HOST [ARG]...",
		Short: "Have a host of the plugin ABI take the tests of the ABI",
		Long:  abiTestHelp,
		Example: `  wasmproxy abi test ./my-host --conformance
  wasmproxy abi test wasmproxy abi host`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if host.Timeout <= 0 {
				return wrongUsage("--timeout: must be positive, got %v", host.Timeout)
			}
			host.Command, host.Stderr = args, cmd.ErrOrStderr()
			tests, err := conformance.Tests()
			if err != nil {
				return err
			}
			report, err := host.Run(cmd.Context(), tests)
			if err != nil {
				return err
			}
			if err := report.Print(cmd.OutOrStdout()); err != nil {
				return err
			}
			if core := report.Counts()[0]; core.Failed > 0 {
				return fmt.Errorf("%d of %d tests of the %s failed", core.Failed, core.Failed+core.Passed, group.Core)
			}
			return nil
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows HOST is HOST's
	cmd.Flags().DurationVar(&host.Timeout, "timeout", 10*time.Second, "the most time for one test")
	return cmd
}

func abiHostCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "host",
		Short: "Take tests of the plugin ABI from stdin, with the engine of this program",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			engine, err := wasm.NewEngine(cmd.Context(), wasm.Options{})
			if err != nil {
				return err
			}
			defer engine.Close(cmd.Context())
			take := func(t conformance.Test) (fixture.Answer, error) {
				module, err := readModule(t.Module)
				if err != nil {
					return fixture.Answer{}, err
				}
				return simulate.RunCase(cmd.Context(), t.Case, func(o simulate.LoadOptions) (plugin.Plugin, error) {
					return engine.Load(cmd.Context(), "conformance", module, wasm.PluginOptions{
						Config: []byte(o.Config), Granted: o.Granted, Features: o.Features, Observer: o.Observer, KV: o.KV, Metrics: o.Metrics,
					})
				})
			}
			_, err = untilDone(cmd.Context(), "tests", func() (struct{}, error) {
				return struct{}{}, conformance.Serve(cmd.InOrStdin(), cmd.OutOrStdout(), take)
			})
			return err
		},
	}
}
