package doctor

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/deploy/systemd"
	"github.com/wasmproxy/wasmproxy/runtime/unitfile"
)

// unit returns where a unit is. The error says why systemd does not matter.
func (n *node) unit(name string) (string, error) {
	if _, err := os.Stat(n.under("/run/systemd/system")); err != nil {
		return "", errors.New("systemd does not run")
	}
	for _, dir := range unitfile.Dirs() {
		if _, err := os.Lstat(filepath.Join(n.under(dir), name)); err == nil {
			return filepath.Join(dir, name), nil
		}
	}
	return "", fmt.Errorf("there is no unit %s: the proxy is started by other means", name)
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
		target, _ := os.Readlink(filepath.Join(n.under(filepath.Dir(at)), name))
		switch {
		case target == "/dev/null":
			all = append(all, found{at, "the unit is masked"})
		case !n.pulledIn(name):
			all = append(all, found{at, "the unit is not enabled"})
		}
	}
	return all, nil
}

// pulledIn reports whether systemd starts a unit with another one: by a link of systemctl enable or of a vendor, or by a
// drop-in of a target.
func (n *node) pulledIn(name string) bool {
	for _, dir := range unitfile.Dirs() {
		for _, kind := range []string{"wants", "requires", "upholds"} {
			if links, _ := filepath.Glob(filepath.Join(n.under(dir), "*."+kind, name)); len(links) > 0 {
				return true
			}
		}
		dropIns, _ := filepath.Glob(filepath.Join(n.under(dir), "*.target.d", "*.conf"))
		for _, path := range dropIns {
			for _, key := range []string{"Wants", "Requires", "Upholds"} {
				if slices.Contains(wordsIn(path, key), name) {
					return true
				}
			}
		}
	}
	return false
}

// findUnitOrder reads the unit and its drop-ins. kubelet's may have the order, too.
func findUnitOrder(_ context.Context, n *node) ([]found, error) {
	at, err := n.unit(systemd.ServiceName)
	if err != nil {
		return nil, err
	}
	kubelet := cmp.Or(n.kubeletUnit, "kubelet.service")
	for _, of := range []struct{ unit, key, other string }{
		{systemd.ServiceName, "Before", kubelet}, {systemd.SocketName, "Before", kubelet},
		{kubelet, "After", systemd.ServiceName}, {kubelet, "After", systemd.SocketName},
	} {
		if slices.Contains(n.unitValues(of.unit, of.key), of.other) {
			return nil, nil
		}
	}
	return []found{{at, "Before= does not name " + kubelet}}, nil
}

const (
	fewRestarts = 3                // of kubelet, which an operator or an upgrade does not make
	steadyTime  = 10 * time.Minute // a kubelet that runs for so long stays up
)

// findKubeletRestarts finds a kubelet that systemd starts again and again.
func findKubeletRestarts(ctx context.Context, n *node) ([]found, error) {
	kubelet := n.kubeletUnit
	if _, err := n.unit(kubelet); kubelet == "" || err != nil {
		return nil, errors.New("there is no systemd with a unit that starts kubelet")
	}
	if n.Unit == nil {
		return nil, errors.New("systemd of the host is not asked")
	}
	p, err := n.Unit(ctx, kubelet, "ActiveState", "SubState", "Result", "NRestarts", "ActiveEnterTimestampMonotonic")
	if err != nil {
		return nil, err
	}
	restarts, _ := strconv.Atoi(p["NRestarts"]) // systemd before 235 does not count
	state := fmt.Sprintf("it is %s (%s), result %s, and systemd has restarted it %d times", p["ActiveState"], p["SubState"], p["Result"], restarts)
	if p["ActiveState"] == "failed" || p["SubState"] == "auto-restart" {
		return []found{{kubelet, state}}, nil
	}
	entered, err := strconv.ParseInt(p["ActiveEnterTimestampMonotonic"], 10, 64)
	if restarts < fewRestarts || err != nil {
		return nil, nil
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, fmt.Errorf("reading the clock: %w", err)
	}
	if up := time.Duration(now.Nano() - entered*int64(time.Microsecond)); up < steadyTime {
		return []found{{kubelet, fmt.Sprintf("%s, last %v ago", state, up.Round(time.Second))}}, nil
	}
	return nil, nil
}

// findProgram compares the program of the process that serves with the one that the unit names.
func findProgram(_ context.Context, n *node) ([]found, error) {
	if n.proxyErr != nil {
		return nil, n.proxyErr
	}
	if _, err := n.unit(systemd.ServiceName); err != nil {
		return nil, err
	}
	words, program := n.unitValues(systemd.ServiceName, "ExecStart"), "" // of drop-ins, too, of which the last one counts
	for i := range max(len(words)-1, 0) {
		if words[i+1] == "serve" {
			program = words[i]
		}
	}
	if !filepath.IsAbs(program) {
		return nil, errors.New("the unit names no program")
	}
	process := filepath.Join(n.under("/proc"), strconv.Itoa(n.status.PID), "exe") // the kernel's link leads to a removed file, too
	running, err := digestOf(process)
	if err != nil {
		return nil, fmt.Errorf("the program of process %d cannot be read: %v", n.status.PID, err)
	}
	installed, err := digestOf(n.under(program))
	if err != nil {
		return []found{{program, err.Error()}}, nil
	}
	if running != installed {
		return []found{{program, fmt.Sprintf("process %d, version %s, runs another program than this file", n.status.PID, n.status.Version)}}, nil
	}
	return nil, nil
}

// digestOf returns the SHA-256 of a file.
func digestOf(path string) (sum [sha256.Size]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// unitValues returns the words of a key that collects them, such as Before.
func (n *node) unitValues(unit, key string) (words []string) {
	for _, file := range unitfile.Find(n.under, unit) {
		words = append(words, wordsIn(n.under(file), key)...)
	}
	return words
}

// wordsIn returns those of a key in a unit or a drop-in.
func wordsIn(file, key string) (words []string) {
	text, _ := os.ReadFile(file)
	for _, o := range unitfile.Options(file, string(text)) {
		if o.Name == key {
			words = append(words, strings.Fields(o.Value.String())...)
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
