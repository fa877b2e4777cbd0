package host

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// shadows are the program and the units that an installation without a package has made: systemd and a shell would
// take them before the package's.
var shadows = []string{filepath.Join(unitDir, systemd.ServiceName), filepath.Join(unitDir, systemd.SocketName), programFile}

// planStale plans the removal of files that an earlier installation has made, and that are as it left them.
func (h *Host) planStale(p *installation, paths ...string) error {
	for _, path := range paths {
		f := p.record.file(path)
		now, err := h.read(path)
		if err != nil {
			return err
		}
		if f == nil || f.Existed {
			continue
		}
		if now != nil && sum(now) == f.After {
			p.own = append(p.own, change{path: path, before: now, program: path == programFile})
		}
	}
	return nil
}

// planUnits plans the program and the units, unless a package has brought them.
func (h *Host) planUnits(p *installation) error {
	files := map[string]string{}
	var order []string
	add := func(path, content string) {
		order = append(order, path)
		files[path] = content
	}
	p.program = systemd.Program
	if _, err := os.Stat(h.under(filepath.Join(packagedDir, systemd.ServiceName))); err != nil {
		program, err := os.ReadFile(h.Program)
		if err != nil {
			return fmt.Errorf("reading the program: %w", err)
		}
		p.program = programFile
		add(programFile, string(program))
		add(filepath.Join(unitDir, systemd.SocketName), systemd.Socket())
		add(filepath.Join(unitDir, systemd.ServiceName), strings.ReplaceAll(systemd.Service(), systemd.Program+" ", programFile+" "))
	} else if err := h.planStale(p, shadows...); err != nil {
		return err
	}
	if path := config.Path(p.socket); !strings.Contains(systemd.Socket(), "\nListenStream="+path+"\n") {
		add(listenDropIn, "# Written by wasmproxy host install: the setting listen.\n[Socket]\nListenStream=\nListenStream="+path+"\n")
	} else if err := h.planStale(p, listenDropIn); err != nil {
		return err
	}
	if order := h.runtimeOrder(p); order != "" {
		add(runtimeDropIn, order)
	} else if err := h.planStale(p, runtimeDropIn); err != nil {
		return err
	}
	for _, path := range order {
		mode := fs.FileMode(0o644)
		if path == programFile {
			mode = 0o755
		}
		c, changed, err := h.planned(path, []byte(files[path]), mode)
		if err != nil {
			return err
		}
		if c.program = path == programFile; changed {
			p.own = append(p.own, c)
		}
	}
	return nil
}

// runtimeOrder returns the drop-in that starts the proxy after the runtime of this node alone, and before a kubelet
// that another unit than kubelet.service starts. It is empty if neither is known. A runtime in kubelet's unit, as that of
// k3s, has no row in package dialect: its unit is active only when kubelet has called the proxy.
func (h *Host) runtimeOrder(p *installation) string {
	text := ""
	if unit := dialect.At(plain(p.settings.Backend)).Unit; unit != "" {
		text += "After=" + unit + "\n"
	}
	if unit := h.KubeletUnit(); unit != "" && unit != kubeletUnit {
		text += "Before=" + unit + "\n"
	}
	if text == "" {
		return ""
	}
	return "# Written by wasmproxy host install: an order only, by the setting backend.\n[Unit]\n" + text
}
