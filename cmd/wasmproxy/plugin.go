package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

func pluginCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugin",
		Short: "Make, try, test and install plugins",
		Long: `  new      writes the source of a plugin, with all that it takes to build it
  build    compiles it to WebAssembly
  inspect  shows what a .wasm file is, wants, and may do
  run      shows what it changes in one event: of a Pod, a fixture, a recorded request
  test     runs it on fixtures and compares its answers
  bench    measures it
  record   writes down what a plugin of the running proxy asks, and what it is answered
  replay   plays a recording to another version, and shows what it would do otherwise
  install  puts a plugin into the plugin directory: a file, or one that comes with this program
  remove   removes what install or a person has put there
  deliver  makes an owner's plugins on a node those of a directory, such as a mounted ConfigMap
  list     shows the plugins of the running proxy and their states
  shadow   shows what a version that is called beside a plugin would do otherwise
  retry    has a version loaded once more that failed its probation
  enable, disable  switch a plugin on or off by its JSON file

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 the plugin refused the call (run), 6 the proxy does
not have a plugin as its files say, 8 it would not load one (deliver).`,
		Args: noSuchCommand,
		RunE: showHelp,
	}
	cmd.AddCommand(newCommand(), buildCommand(), inspectCommand(), runCommand(), testCommand(), benchCommand())
	cmd.AddCommand(recordCommand(), replayCommand())
	cmd.AddCommand(installCommand(), removeCommand(), deliverCommand(), listCommand(), shadowCommand(), retryCommand())
	cmd.AddCommand(enableCommand(true), enableCommand(false))
	return cmd
}

// pluginFile is a module with what the JSON file beside it says.
type pluginFile struct {
	path   string
	module []byte
	beside registry.Description
}

// readModule reads a file. Only a regular one can be a plugin, as for the proxy.
func readModule(path string) ([]byte, error) {
	module, err := regular.Read(path, abi.MaxModule, nil)
	if err != nil {
		return nil, fmt.Errorf("reading module %s: %w", path, err)
	}
	return module, nil
}

func readPlugin(path string) (pluginFile, error) {
	module, err := readModule(path)
	if err != nil {
		return pluginFile{}, err
	}
	beside, err := registry.Beside(path)
	return pluginFile{path, module, beside}, err
}

// checkDigest compares the module with the sha256 of the file beside it.
func (p pluginFile) checkDigest() error {
	sum := sha256.Sum256(p.module)
	if has := hex.EncodeToString(sum[:]); p.beside.Digest != "" && p.beside.Digest != has {
		return fmt.Errorf("%s: sha256: want %s, the module has %s", p.beside.JSONName(), p.beside.Digest, has)
	}
	return nil
}

// warnings say what a plugin with this manifest, or the file beside it, asks for in vain,
// and where serve does not do what is shown.
func (p pluginFile) warnings(m abi.Manifest) (all []string) {
	if p.beside.Disabled {
		all = append(all, fmt.Sprintf("%s disables the plugin: serve does not load it", p.beside.JSONName()))
	}
	if p.beside.DryRun {
		all = append(all, fmt.Sprintf("%s sets dry-run: serve logs the changes of the plugin and applies none", p.beside.JSONName()))
	}
	if err := p.checkDigest(); err != nil {
		all = append(all, fmt.Sprintf("serve does not load it: %v", err))
	}
	declared, unknown := m.Declared()
	if vain := p.beside.Grant &^ declared; vain != 0 {
		all = append(all, fmt.Sprintf("grant of %s names %s, which the plugin does not declare: it has no effect", p.beside.JSONName(), strings.Join(vain.Names(), ", ")))
	}
	for _, name := range unknown {
		all = append(all, fmt.Sprintf("the plugin declares the unknown capability %q; this version has %s", name, strings.Join(abi.AllCapabilities.Names(), ", ")))
	}
	return all
}

// settings are what the proxy would load the plugin with, as far as its files say. Its own
// settings are the defaults.
func (p pluginFile) settings() wasm.PluginOptions {
	return wasm.PluginOptions{
		Set:         p.beside.Limits,
		Timeout:     p.beside.Timeout,
		TickTimeout: p.beside.TickTimeout,
		Interpret:   p.beside.Interpret,
		State:       p.beside.State,
		Max:         config.Default().MaxLimits(),
	}
}

// loader loads the plugin as the proxy does.
func (p pluginFile) loader(ctx context.Context, e *wasm.Engine) simulate.Loader {
	return func(o simulate.LoadOptions) (plugin.Plugin, error) {
		settings := p.settings()
		settings.Config, settings.Granted, settings.Features = []byte(o.Config), o.Granted, o.Features
		settings.KV, settings.Metrics, settings.Observer = o.KV, o.Metrics, o.Observer
		loaded, err := e.Load(ctx, p.beside.ID, p.module, settings)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.path, err)
		}
		return loaded, nil
	}
}

// grants reads the names of capabilities, "*" being all.
func grants(names []string) (abi.CapabilitySet, error) {
	all, unknown := abi.CapabilitiesNamed(names)
	if len(unknown) > 0 {
		return 0, wrongUsage("--grant: unknown capability %q; the capabilities are %s", unknown[0], strings.Join(abi.AllCapabilities.Names(), ", "))
	}
	return all, nil
}

// hookNamed reads the value of --hook.
func hookNamed(name string) (abi.Hook, error) {
	if name == "" {
		return 0, nil
	}
	if h, ok := abi.HookByName(name); ok {
		return h, nil
	}
	var names []string
	for _, info := range abi.Hooks {
		if strings.EqualFold(info.Name, name) {
			return info.Hook, nil
		}
		names = append(names, info.Name)
	}
	return 0, wrongUsage("--hook: unknown hook %q; the hooks are %s", name, strings.Join(names, ", "))
}

// stem is a file's name without directory and extension.
func stem(path string) string { return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)) }
