package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	"github.com/wasmproxy/wasmproxy/runtime/doctor"
	"github.com/wasmproxy/wasmproxy/runtime/host"
)

const doctorLong = `It looks at kubelet's files and process, the container runtime, cgroups, permissions, plugins,
systemd units, and what the running proxy tells. It changes nothing. Each finding says where
it is, what was found, what it causes and what to do. A check that cannot be made, such as
one that needs a running proxy, or systemd with --root, is listed as not checked, with the reason.

The settings are those of serve: flags, environment and the file of --config, which is
` + host.SettingsFile + ` if it is not given and that file exists.

Exit codes: 0 nothing is wrong, or there are notes only; 4 there are warnings; 5 there are
errors.`

func doctorCommand() *cobra.Command {
	var format string
	load := func(ctx context.Context, c *config.Config) ([]string, error) { return daemon.Check(ctx, c, false) }
	o := doctor.Options{Load: load, Clock: doctor.KernelClock}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what is wrong with the proxy and its node, and say what to do",
		Long:  doctorLong,
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !filepath.IsAbs(o.Root) {
				return wrongUsage("--root: %q is not an absolute path", o.Root)
			}
			if filepath.Clean(o.Root) == "/" {
				o.Unit = host.SystemdUnit
			}
			if o.Settings, o.SettingsErr = loadSettings(cmd, o.Root); o.SettingsErr != nil {
				o.Settings = lastGoodSettings(cmd, o.Root, o.SettingsErr)
			}
			o.SettingsFile = cmd.Flags().Lookup(config.FileFlag).Value.String()
			report := doctor.Run(cmd.Context(), o)
			if err := cmd.Context().Err(); err != nil { // what was not asked is no finding
				return err
			}
			if err := printDiagnosis(cmd.OutOrStdout(), report, format); err != nil {
				return err
			}
			return diagnosisError(report)
		},
	}
	adminFlags(cmd)
	outputFlag(cmd, &format)
	cmd.Flags().StringVar(&o.Root, "root", "/", "directory in which a container has the host's files")
	cmd.Flags().StringVar(&o.KubeletConfig, "kubelet-config", host.DefaultKubeletConfig, "kubelet's configuration file, unless kubelet runs and names another")
	return cmd
}

// diagnosisError has the exit code of the worst finding.
func diagnosisError(r *doctor.Report) error {
	count := map[doctor.Severity]int{}
	for _, f := range r.Findings {
		count[f.Severity]++
	}
	switch err := fmt.Errorf("errors: %d, warnings: %d", count[doctor.Error], count[doctor.Warning]); {
	case count[doctor.Error] > 0:
		return coded{err, exitDoctorError}
	case count[doctor.Warning] > 0:
		return coded{err, exitDoctorWarning}
	}
	return nil
}

func printDiagnosis(out io.Writer, r *doctor.Report, format string) error {
	if format == "json" {
		return encode(out, r)
	}
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s\n  where:  %s\n  found:  %s\n  effect: %s\n  remedy: %s\n\n", strings.ToUpper(string(f.Severity)), f.Check, f.Where, f.Found, f.Effect, f.Remedy)
	}
	for i, n := range r.NotChecked {
		same := func(o doctor.NotChecked) bool { return o.Reason == n.Reason }
		if slices.IndexFunc(r.NotChecked, same) < i { // it was named there
			continue
		}
		var checks []string
		for _, o := range r.NotChecked[i:] {
			if same(o) {
				checks = append(checks, o.Check)
			}
		}
		fmt.Fprintf(&b, "not checked: %s: %s\n", strings.Join(checks, ", "), n.Reason)
	}
	for _, f := range r.Facts {
		fmt.Fprintf(&b, "%s: %s\n", f.Name, f.Value)
	}
	fmt.Fprintf(&b, "checks passed: %d, not made: %d; findings: %d\n", len(r.Passed), len(r.NotChecked), len(r.Findings))
	_, err := io.WriteString(out, b.String())
	return err
}
