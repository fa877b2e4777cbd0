// Command wasmproxy-fleet-verify says who has signed an artifact. It is wasmproxy-fleet verify, and what agents run to verify: a program of
// its own, since what it needs would make each agent larger by a half.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/fleet/flags"
	"github.com/wasmproxy/wasmproxy/fleet/oci"
	"github.com/wasmproxy/wasmproxy/fleet/trust"
	"github.com/wasmproxy/wasmproxy/fleet/trust/verify"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command().ExecuteContext(ctx)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "wasmproxy-fleet verify:", err)
	if errors.Is(err, trust.ErrRefused) || errors.Is(err, oci.ErrContent) {
		os.Exit(trust.ExitRefused)
	}
	os.Exit(1)
}

// options are those of the command.
type options struct {
	registry           oci.Client
	trust, with, write string
}

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "wasmproxy-fleet verify REFERENCE",
		Long: `Look for a signature of an artifact that the trust file of a node asks for, and print who has signed it. It is
an error if there is none, and the error says why each signature does not count. REFERENCE names a
digest. Signatures are read from the registry or its mirrors; verifying them needs no network. The exit
code is 3 if the artifact is not to be trusted, and 1 if that is not known.`,
		Args:          cobra.ExactArgs(1),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			signer, err := o.run(cmd.Context(), args[0])
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is signed by %s\n", args[0], signer)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.with, "bundle", "", "file with the signature's bundle: only that is verified, and no registry is asked")
	f.StringVar(&o.write, "write-bundle", "", "file for the bundle of the signature that counts")
	flags.Trust(cmd, &o.trust)
	flags.Mirrors(cmd, &o.registry)
	flags.Registry(cmd, &o.registry)
	return cmd
}

func (o options) run(ctx context.Context, reference string) (signer string, err error) {
	policy, _, err := trust.NewFile(o.trust).Policy()
	if err != nil {
		return "", err
	}
	if policy == nil {
		return "", fmt.Errorf("reading the trust file %s: there is no such file: name one with --trust", o.trust)
	}
	v, err := verify.New(policy)
	if err != nil {
		return "", err
	}
	if o.with == "" {
		bundle, signer, err := v.Find(ctx, o.registry, reference)
		if err == nil && o.write != "" {
			err = regular.Replace(o.write, bundle, 0o644)
		}
		return signer, err
	}
	repository, artifact, err := oci.Repository(reference)
	if err != nil {
		return "", err
	}
	bundle, err := regular.Read(o.with, oci.MaxBundle, nil)
	if err != nil {
		return "", fmt.Errorf("reading the bundle %s: %w", o.with, err)
	}
	return v.Verify(repository, artifact, bundle)
}
