package host

import (
	"bytes"
	"fmt"
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
func (p *installation) planStale(paths ...string) error {
	for _, path := range paths {
		f := p.record.file(path)
		now, err := p.host.Root.read(path)
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
func (p *installation) planUnits() error {
	var wanted []change
	want := func(path, content string) {
		wanted = append(wanted, change{path: path, after: []byte(content), mode: 0o644})
	}
	p.program = systemd.Program
	if !p.host.Root.has(filepath.Join(packagedDir, systemd.ServiceName)) {
		program, err := os.ReadFile(p.host.Program)
		if err != nil {
			return fmt.Errorf("reading the program: %w", err)
		}
		p.program = programFile
		wanted = append(wanted, change{path: programFile, after: program, mode: 0o755, program: true})
		want(filepath.Join(unitDir, systemd.SocketName), systemd.Socket())
		want(filepath.Join(unitDir, systemd.ServiceName), strings.ReplaceAll(systemd.Service(), systemd.Program+" ", programFile+" "))
	} else if err := p.planStale(shadows...); err != nil {
		return err
	}
	if path := config.Path(p.socket); !strings.Contains(systemd.Socket(), "\nListenStream="+path+"\n") {
		want(listenDropIn, "# Written by wasmproxy host install: the setting listen.\n[Socket]\nListenStream=\nListenStream="+path+"\n")
	} else if err := p.planStale(listenDropIn); err != nil {
		return err
	}
	order := "" // a runtime in kubelet's unit, as that of k3s, has no row: its unit is active only when kubelet has called the proxy
	if unit := dialect.At(plain(p.settings.Backend)).Unit; unit != "" {
		order += "After=" + unit + "\n"
	}
	if unit := p.host.KubeletUnit(); unit != "" && unit != kubeletUnit { // that starts kubelet
		order += "Before=" + unit + "\n"
	}
	if order != "" {
		want(runtimeDropIn, "# Written by wasmproxy host install: an order only, by the setting backend.\n[Unit]\n"+order)
	} else if err := p.planStale(runtimeDropIn); err != nil {
		return err
	}
	for _, c := range wanted {
		var err error
		if c.before, err = p.host.Root.read(c.path); err != nil {
			return err
		}
		if c.before == nil || !bytes.Equal(c.before, c.after) {
			p.own = append(p.own, c)
		}
	}
	return nil
}
