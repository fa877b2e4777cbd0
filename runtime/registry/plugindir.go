package registry

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// readPluginDir reads the plugin directory. X.json beside X.wasm describes it;
// alone it is a hook server's, or names a module. Hidden files and other
// extensions are passed over.
func readPluginDir(dir string, names []string) (found []Description, problems []error) {
	for _, name := range names {
		path := filepath.Join(dir, name)
		if filepath.Ext(name) != ".json" || strings.HasPrefix(name, ".") || moduleBeside(name, names) {
			continue
		}
		d, s, ok := readHookServer(path, pluginFiles, parsePlugin)
		switch {
		case !ok:
		case s.module != "":
			if d.readNamed(s) {
				found = append(found, d)
			}
		case d.Problem == nil && s.endpoint == "":
			problems = append(problems, &fileError{path, fmt.Errorf("describes no plugin: it has no remote-endpoint, no wasm-module and no %s beside it", plugin.Name(stem(name)+".wasm"))})
		default:
			d.Disabled = s.disabled
			found = append(found, d)
		}
	}
	return append(found, readModules(dir, names)...), problems
}
