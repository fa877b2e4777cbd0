package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// pluginConfig begins the usage of a flag --config that is the plugin's, and not the proxy's.
const pluginConfig = "JSON file of the plugin's configuration"

// eventFlags say which event a plugin gets.
type eventFlags struct {
	hook, event, config string
	grant               []string
	setting             simulate.Setting
	cgroup, driver      string
	show                bool // secrets
}

func (f *eventFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.hook, "hook", "", "hook, such as PreCreateContainer; a fixture may say it itself")
	flags.StringVar(&f.event, "event", "", "file of the event: a Pod's YAML, a fixture, or a CRI request; - is stdin")
	flags.StringVar(&f.config, "config", "", pluginConfig+" (default: key config of X.json beside X.wasm)")
	flags.StringSliceVar(&f.grant, "grant", nil, "capabilities beside the default and those of X.json, such as env,store.read; * is all")
	flags.StringVar(&f.setting.Case, "case", "", "name of the case, of several in a file (default: the first, or the first of --hook)")
	flags.StringVar(&f.setting.Container, "container", "", "container of the Pod (default: the first)")
	flags.StringVar(&f.setting.Handler, "runtime-handler", "", "runtime handler of the Pod (default: its RuntimeClass's)")
	flags.StringSliceVar(&f.setting.Command, "command", nil, "what Exec and ExecSync run in the Pod, such as sh,-c,ls")
	flags.StringVar(&f.cgroup, "cgroup", "", "cgroup version of the node: v1 or v2 (default: what a fixture says, else v2)")
	flags.StringVar(&f.driver, "cgroup-driver", "cgroupfs", "how kubelet names cgroups: cgroupfs or systemd")
	flags.Int64Var(&f.setting.Memory, "node-memory", 16<<30, "memory of the node in bytes, by which kubelet sets OOM scores")
}

// trial is a plugin, and an event that it is to get.
type trial struct {
	plugin  pluginFile
	event   *simulate.Event
	options simulate.Options
	engine  *wasm.Engine
}

// try reads the plugin and the event. The caller closes the engine.
func (f *eventFlags) try(cmd *cobra.Command, path string) (t trial, err error) {
	ctx := cmd.Context()
	if t.plugin, err = readPlugin(path); err != nil {
		return t, err
	}

	if f.event == "" {
		return t, wrongUsage("--event FILE is required")
	}
	hook, err := hookNamed(f.hook)
	if err != nil {
		return t, err
	}
	versions, drivers := map[string]int{"v1": 1, "v2": 2}, map[string]bool{"cgroupfs": false, "systemd": true}
	var known bool
	if f.setting.CgroupVersion, known = versions[f.cgroup]; !known && f.cgroup != "" {
		return t, wrongUsage("--cgroup: must be v1 or v2, got %q", f.cgroup)
	}
	if f.setting.Systemd, known = drivers[f.driver]; !known {
		return t, wrongUsage("--cgroup-driver: must be cgroupfs or systemd, got %q", f.driver)
	}
	if f.setting.Memory <= 0 {
		return t, wrongUsage("--node-memory: must be greater than 0, got %d", f.setting.Memory)
	}
	name, open := f.event, func() (io.ReadCloser, error) { return os.Open(f.event) }
	if name == "-" {
		name, open = "stdin", func() (io.ReadCloser, error) { return io.NopCloser(cmd.InOrStdin()), nil }
	}
	text, err := readOpen(ctx, name, open)
	if err != nil {
		return t, fmt.Errorf("--event: %w", err)
	}
	t.event, err = simulate.Read(text, hook, f.setting)
	if errors.Is(err, simulate.ErrNoHook) {
		return t, wrongUsage("--event %s: %w; name one with --hook", f.event, err)
	}
	if err != nil {
		return t, fmt.Errorf("--event %s: %w", f.event, err)
	}

	more, err := grants(f.grant)
	if err != nil {
		return t, err
	}
	d := t.plugin.beside
	if t.event.Fixture {
		d = registry.Description{ID: d.ID, File: d.File, Policy: d.Policy}
	}
	t.options = simulate.Options{
		ID: d.ID, Config: string(d.Config), Grant: d.Grant | more, Bounds: d.Bounds, Beside: d.JSONName(), Match: d.Match, Policy: d.Policy,
		ShowSecrets: f.show,
	}
	if f.config != "" {
		if t.options.Config, err = compactFile(ctx, f.config); err != nil {
			return t, err
		}
	}
	if t.engine, err = wasm.NewEngine(ctx, wasm.Options{}); err != nil {
		return t, err
	}
	t.options.Load = t.plugin.loader(ctx, t.engine)
	return t, nil
}

// once loads the plugin and lets the event happen once.
func (t trial) once(ctx context.Context) (res simulate.Result, err error) {
	s, err := simulate.Open(ctx, t.event, t.options)
	if err != nil {
		return res, err
	}
	defer s.Close(ctx) // what is left is a temporary directory
	return s.Run(ctx)
}

// runHelp is the long help of plugin run.
const runHelp = `The event is made into the CRI call that it comes from and goes through the proxy's
own engine and code. Nothing runs, and no cgroup is touched. FILE is one of

  a Pod         YAML or JSON, converted as kubelet 1.37 would: QoS class, cgroup parent,
                shares, quota, OOM score, labels, annotations, environment, mounts,
                overhead and runtime handler. A RuntimeClass may be in the same file.
  a fixture     as plugin test plays it; of several cases the first, and a note says so, or
                the one that --case and --hook name
  a request     of the hook's method, as protojson or as it is on the wire

X.json beside X.wasm counts as in the plugin directory: its config, grant, limits, timeouts,
state, match and failure-policy. A fixture says its config and grant itself, as in plugin test, and no
match counts. No namespace is exempt: on a node, a pod of kube-system that is refused here runs, by the
setting exempt-namespaces. Values of environment variables and registry credentials are shown as (hidden),
also where the plugin says them, as in the proxy's log.
Exit codes: 0 the call proceeds, 1 the plugin failed or the call fails, 2 wrong usage, 3 the
plugin refused the call.`

func runCommand() *cobra.Command {
	var f eventFlags
	var format string
	cmd := &cobra.Command{
		Use:   "run X.wasm --event FILE [--hook HOOK]",
		Short: "Show what a plugin makes of one event, and what the runtime would get",
		Long:  runHelp,
		Example: `  wasmproxy plugin run 10-cpu-boost.wasm --hook PreCreateContainer --event pod.yaml
  wasmproxy plugin run 10-cpu-boost.wasm --event testdata/boost.json
  kubectl get pod web -o yaml | wasmproxy plugin run x.wasm --hook PreRunPodSandbox --event -`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := f.try(cmd, args[0])
			if err != nil {
				return err
			}
			defer t.engine.Close(cmd.Context())
			result, err := t.once(cmd.Context())
			if err != nil {
				return err
			}
			p := t.plugin
			result.Remarks = append(result.Remarks, p.warnings(result.Manifest)...)
			if p.beside.HooksNamed && !p.beside.Hooks.Has(result.Hook) {
				result.Remarks = append(result.Remarks, fmt.Sprintf("runtime-hooks of %s does not include %v: serve does not call the plugin in it", p.beside.JSONName(), result.Hook))
			}
			write := printResult
			if format == "json" {
				write = encodeResult
			}
			err = write(cmd.OutOrStdout(), result)
			switch {
			case result.Rejection != nil:
				return errors.Join(err, coded{fmt.Errorf("%s refused the call: %s", args[0], result.Rejection.Reason), exitRejected})
			case result.Err != nil:
				return errors.Join(err, fmt.Errorf("%s failed: %s", args[0], whyFailed(result.Err)))
			case result.Answer != nil:
				return errors.Join(err, fmt.Errorf("the call fails: %w", result.Answer))
			}
			return err
		},
	}
	f.register(cmd)
	outputFlag(cmd, &format)
	cmd.Flags().BoolVar(&f.show, "show-env", false, "show the values of environment variables and credentials")
	return cmd
}
