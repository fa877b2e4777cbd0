package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
)

// unitDirs are where systemd looks for units, from the one that wins.
var unitDirs = []string{"/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}

// unit returns where a unit is. The error says why systemd does not matter.
func (n *node) unit(name string) (string, error) {
	if _, err := os.Stat(n.under("/run/systemd/system")); err != nil {
		return "", unknown("systemd does not run")
	}
	for _, dir := range unitDirs {
		if _, err := os.Lstat(filepath.Join(n.under(dir), name)); err == nil {
			return filepath.Join(dir, name), nil
		}
	}
	return "", unknown(fmt.Sprintf("there is no unit %s: the proxy is started by other means", name))
}

func findUnitEnabled(_ context.Context, n *node) (all []found, err error) {
	if _, err := n.unit(systemd.ServiceName); err != nil {
		return nil, err
	}
	for _, name := range []string{systemd.SocketName, systemd.ServiceName} {
		at, err := n.unit(name)
		if err != nil { // a service without a socket unit makes its socket itself
			continue
		}
		var links []string
		for _, kind := range []string{"wants", "requires"} {
			found, _ := filepath.Glob(filepath.Join(n.under(unitDirs[0]), "*."+kind, name))
			links = append(links, found...)
		}
		target, _ := os.Readlink(filepath.Join(n.under(filepath.Dir(at)), name))
		switch {
		case target == "/dev/null":
			all = append(all, found{at, "the unit is masked"})
		case len(links) == 0:
			all = append(all, found{at, "the unit is not enabled"})
		}
	}
	return all, nil
}

// findUnitOrder reads the unit and its drop-ins. kubelet's may have the order, too.
func findUnitOrder(_ context.Context, n *node) ([]found, error) {
	at, err := n.unit(systemd.ServiceName)
	if err != nil {
		return nil, err
	}
	for _, of := range []struct{ unit, key, other string }{
		{systemd.ServiceName, "Before", "kubelet.service"}, {systemd.SocketName, "Before", "kubelet.service"},
		{"kubelet.service", "After", systemd.ServiceName}, {"kubelet.service", "After", systemd.SocketName},
	} {
		if slices.Contains(n.unitValues(of.unit, of.key), of.other) {
			return nil, nil
		}
	}
	return []found{{at, "Before= does not name kubelet.service"}}, nil
}

// unitValues returns the words of a key that collects them, such as Before.
func (n *node) unitValues(unit, key string) (words []string) {
	at, err := n.unit(unit)
	if err != nil {
		return nil
	}
	files := []string{n.under(at)}
	for _, dir := range unitDirs {
		dropIns, _ := filepath.Glob(filepath.Join(n.under(dir), unit+".d", "*.conf"))
		files = append(files, dropIns...)
	}
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.TrimSpace(name) == key {
				words = append(words, strings.Fields(value)...)
			}
		}
	}
	return words
}

// KernelClock reports whether the kernel says that its clock is synchronized.
func KernelClock() (bool, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, err
}

func findClock(_ context.Context, n *node) ([]found, error) {
	if n.Clock == nil {
		return nil, unknown("the kernel is not asked")
	}
	ok, err := n.Clock()
	if err != nil {
		return nil, fmt.Errorf("asking the kernel for the state of its clock: %w", err)
	}
	if !ok {
		return []found{{"kernel", "the clock is not synchronized"}}, nil
	}
	return nil, nil
}

const crictlFile = "/etc/crictl.yaml"

func findCrictl(_ context.Context, n *node) ([]found, error) {
	text, err := os.ReadFile(n.under(crictlFile))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var settings struct {
		Endpoint string `json:"runtime-endpoint"`
	}
	if err == nil {
		err = yaml.Unmarshal(text, &settings)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", crictlFile, err)
	}
	if settings.Endpoint == "" || n.sameSocket(settings.Endpoint, n.config.Listen) {
		return nil, nil
	}
	return []found{{crictlFile, "runtime-endpoint is " + settings.Endpoint}}, nil
}
