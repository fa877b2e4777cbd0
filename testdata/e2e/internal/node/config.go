package node

import (
	"bytes"
	"embed"
	"os"
	"path/filepath"
	"text/template"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/image"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// configs are templates of configuration files.
//
//go:embed config
var configs embed.FS

// writeConfigs fills in the templates of a runtime, by the file's name in dir, and
// that of CNI, which all have. ociRuntime is the program that makes containers.
func writeConfigs(dir, ociRuntime string, files map[string]string) error {
	files["cni/10-e2e.conflist"] = "cni.conflist"
	values := struct {
		Dir, Bin, Registry string
		Registries         []string
		Systemd            bool   // whether it is the cgroup driver
		CgroupDriver       string // its name
		OCIRuntime         string // program that makes containers
	}{dir, isolation.Current().Bin(), RegistryAddress, image.Registries, CgroupDriver() == Systemd, CgroupDriver(), ociRuntime}
	for file, name := range files {
		text, err := template.ParseFS(configs, "config/"+name)
		if err != nil {
			return err
		}
		var data bytes.Buffer
		if err := text.Execute(&data, values); err != nil {
			return err
		}
		file = filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, data.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
