package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/wasmproxy/wasmproxy/runtime/host"
)

func hostCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Install the proxy on this host, or uninstall it",
		Args:  noSuchCommand,
		RunE:  showHelp,
	}
	h := &host.Host{Program: host.Self}
	install := hostSubcommand(h, "install", "Install the proxy on this host, and point kubelet at it",
		`It shows each change, and asks before it makes any:

  1. the program and the systemd units, unless a package has brought them, directories, and
     settings for the runtime that kubelet uses
  2. the units are enabled and started, and the proxy and the container runtime must answer
  3. kubelet's endpoint becomes the proxy's socket: in kubeadm's flag file, the kubelet
     configuration, kubeadm's instance configuration, and flags in kubelet's environment files
     and units
  4. with --restart-kubelet, kubelet is restarted and must connect to the proxy in two minutes. If it
     does not, everything is taken back, kubelet is restarted with its former endpoint, and the
     command fails with what systemd says of kubelet. --no-rollback keeps the new state

Running pods are not affected. What is replaced is recorded in `+host.RecordFile+`.
The command can be run again after it was interrupted, or with a newer program, which must pass
wasmproxy validate. The service is restarted if it runs another program. kubelet is not restarted
again if it has the endpoint already, and is connected. Nor is it if it has started since its
files changed: then the command waits for two minutes, and fails if it does not connect.

In an image no file of kubelet may name an endpoint yet, and on some hosts another program, such
as k3s or nodeadm of EKS, writes these files again and again. There, --backend names the container
runtime. The command then leaves kubelet's files as they are, and says what to set where:
criSocket for kubeadm, and the setting of that program otherwise.`, (*host.Host).Install)
	install.Flags().StringVar(&h.Backend, "backend", "", "endpoint of the container runtime, where no file of kubelet names it or another program writes them")
	uninstall := hostSubcommand(&host.Host{Program: host.Self}, "uninstall",
		"Give kubelet its former endpoint, and remove the proxy from this host",
		`It turns the bypass on, which undoes the values that plugins have set, and takes back what
host install has recorded. It shows each change first. kubelet's files that are as host install
left them get back every byte. If another one has the proxy's endpoint, such as one that was
edited since, nothing is changed: the command shows the change that is to be made by hand, and
its exit code is 7. Other files that were edited stay, as do plugins. On a host without the
proxy it changes nothing. The service ends when kubelet does not use it any more: with
--restart-kubelet the command restarts kubelet, and fails if it does not serve in two minutes.
Without it the command fails if kubelet uses the proxy, and says so.`, (*host.Host).Uninstall)
	cmd.AddCommand(install, uninstall)
	return cmd
}

func hostSubcommand(h *host.Host, use, short, long string, do func(*host.Host, context.Context, host.Consent) error) *cobra.Command {
	consent, yes, enter := host.Consent{}, false, false
	cmd := &cobra.Command{Use: use, Short: short, Long: long, Args: noArguments, RunE: func(cmd *cobra.Command, _ []string) error {
		outliveReader() // half a change would be left
		if !filepath.IsAbs(string(h.Root)) {
			return wrongUsage("--root: %q is not an absolute path", h.Root)
		}
		if enter {
			if filepath.Clean(string(h.Root)) != "/" {
				return wrongUsage("--enter-host installs on the host that runs, and --root %s in an image: give one of them", h.Root)
			}
			if err := host.Enter(1); err != nil {
				return err
			}
		}
		if !yes {
			consent.Confirm = func() (bool, error) { return ask(cmd) }
		}
		h.Out = cmd.OutOrStdout()
		err := do(h, cmd.Context(), consent)
		if errors.As(err, new(host.ByHand)) {
			return coded{err, exitByHand}
		}
		return err
	}}
	cmd.Flags().BoolVar(&consent.DryRun, "dry-run", false, "only show the changes")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&consent.RestartKubelet, "restart-kubelet", false, "restart kubelet, so that it uses its new endpoint")
	if use == "install" {
		cmd.Flags().BoolVar(&consent.NoRollback, "no-rollback", false, "keep the installation also if kubelet does not connect to the proxy")
	}
	cmd.Flags().StringVar((*string)(&h.Root), "root", "/", "directory of an image, in which units are enabled and nothing is started")
	cmd.Flags().BoolVar(&enter, "enter-host", false, "work in the namespaces of process 1: for a privileged pod with hostPID")
	cmd.Flags().StringVar(&h.KubeletConfig, "kubelet-config", host.DefaultKubeletConfig, "kubelet's configuration file")
	return cmd
}

// ask reads the answer of somebody at a terminal.
func ask(cmd *cobra.Command) (bool, error) {
	if in, file := cmd.InOrStdin().(*os.File); file && !term.IsTerminal(int(in.Fd())) {
		return false, errors.New("nobody is at the terminal to agree to the changes: give --yes, or --dry-run")
	}
	fmt.Fprint(cmd.OutOrStdout(), "\nMake these changes? [y/N] ")
	answer, err := untilDone(cmd.Context(), "the answer", func() (string, error) { return bufio.NewReader(cmd.InOrStdin()).ReadString('\n') })
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("nothing was changed: %w", err)
	}
	return strings.EqualFold(strings.TrimSpace(answer), "y") || strings.EqualFold(strings.TrimSpace(answer), "yes"), nil
}
