package doctor

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

func findPluginFiles(_ context.Context, n *node) ([]found, error) {
	if err := n.unloaded(); err != nil {
		return nil, err
	}
	return each("plugin files", lines(n.pluginErr)), nil
}

// findPluginReach looks through what loading tells of plugins.
func findPluginReach(_ context.Context, n *node) (all []found, err error) {
	if err := n.unloaded(); err != nil {
		return nil, err
	}
	for _, line := range n.pluginLines {
		id, text, _ := strings.Cut(line, ": ")
		if warning, is := strings.CutPrefix(text, "warning: "); is {
			all = append(all, found{"plugin " + id, warning})
		} else if _, none, is := strings.Cut(text, ", no hooks: "); is {
			all = append(all, found{"plugin " + id, "it has no hooks: " + none})
		}
	}
	return all, nil
}

func findHookServers(ctx context.Context, n *node) (all []found, err error) {
	dirs := registry.Dirs{Plugins: n.under(n.config.PluginDir)}
	if n.config.HookDir != "" {
		dirs.Hooks = n.under(n.config.HookDir)
	}
	plugins, _ := registry.Read(dirs) // its errors are those of plugin-files
	for _, p := range plugins {
		if p.Endpoint == "" || p.Problem != nil || p.Disabled {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, answerTime)
		conn, err := new(net.Dialer).DialContext(ctx, "unix", n.under(p.Endpoint))
		cancel()
		if err != nil {
			all = append(all, found{p.File, fmt.Sprintf("remote-endpoint: %v", err)})
			continue
		}
		conn.Close()
	}
	return all, nil
}
