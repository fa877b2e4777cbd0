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
)

// unit asks systemd for properties of a unit. The error says why there are none.
func (n *node) unit(ctx context.Context, name string, properties ...string) (map[string]string, error) {
	if _, err := os.Stat(n.under("/run/systemd/system")); err != nil {
		return nil, errors.New("systemd does not run")
	}
	if n.Unit == nil {
		return nil, errors.New("systemd of the host is not asked with --root")
	}
	p, err := n.Unit(ctx, name, append(properties, "LoadState")...)
	if name == systemd.ServiceName && p["LoadState"] == noUnit {
		return nil, fmt.Errorf("there is no unit %s: the proxy is started by other means", name)
	}
	return p, err
}

// noUnit is the LoadState of a unit that has no file.
const noUnit = "not-found"

func findUnitEnabled(ctx context.Context, n *node) (all []found, err error) {
	for _, name := range []string{systemd.ServiceName, systemd.SocketName} {
		p, err := n.unit(ctx, name, "WantedBy", "RequiredBy", "UpheldBy")
		switch state := p["LoadState"]; {
		case err != nil:
			return nil, err
		case state == noUnit: // a service without a socket unit makes its socket itself
		case state != "loaded":
			all = append(all, found{name, "the unit is " + state})
		case p["WantedBy"]+p["RequiredBy"]+p["UpheldBy"] == "":
			all = append(all, found{name, "the unit is not enabled"})
		}
	}
	return all, nil
}

// findUnitOrder asks for what the units are before. systemd also tells of units that name these in After=.
func findUnitOrder(ctx context.Context, n *node) ([]found, error) {
	kubelet, err := n.unit(ctx, cmp.Or(n.kubeletUnit, "kubelet.service"), "Id") // which may be the other name of a unit
	if err != nil {
		return nil, err
	}
	for _, name := range []string{systemd.ServiceName, systemd.SocketName} {
		p, err := n.unit(ctx, name, "Before")
		if err != nil {
			return nil, err
		}
		if slices.Contains(strings.Fields(p["Before"]), kubelet["Id"]) {
			return nil, nil
		}
	}
	return []found{{systemd.ServiceName, "Before= does not name " + kubelet["Id"]}}, nil
}

const (
	fewRestarts = 3                // of kubelet, which an operator or an upgrade does not make
	steadyTime  = 10 * time.Minute // a kubelet that runs for so long stays up
)

// findKubeletRestarts finds a kubelet that systemd starts again and again.
func findKubeletRestarts(ctx context.Context, n *node) ([]found, error) {
	kubelet := n.kubeletUnit
	if kubelet == "" {
		return nil, errors.New("the host has no unit that starts kubelet")
	}
	p, err := n.unit(ctx, kubelet, "ActiveState", "SubState", "Result", "NRestarts", "ActiveEnterTimestampMonotonic")
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

// findProgram compares the program of the process that serves with the file that systemd would start now.
func findProgram(ctx context.Context, n *node) ([]found, error) {
	if n.proxyErr != nil {
		return nil, n.proxyErr
	}
	p, err := n.unit(ctx, systemd.ServiceName, "MainPID", "ExecStart")
	if err != nil {
		return nil, err
	}
	if p["MainPID"] != strconv.Itoa(n.status.PID) { // it may be in a container, where processes have other numbers
		return nil, fmt.Errorf("the proxy that answers is not the process of %s", systemd.ServiceName)
	}
	exe := filepath.Join(n.under("/proc"), p["MainPID"], "exe") // the kernel's link leads to a removed file, too
	running, err := os.Stat(exe)
	if err != nil {
		return nil, err
	}
	_, program, _ := strings.Cut(p["ExecStart"], "path=") // as systemd shows it: { path=/usr/bin/wasmproxy ; argv[]=… }
	program, _, _ = strings.Cut(program, " ; ")
	file := n.under(program)
	if !strings.Contains(filepath.Base(program), "wasmproxy") {
		// A shell or the like starts the program: it is taken for the file in whose place it was.
		if file, err = os.Readlink(exe); err != nil {
			return nil, err
		}
		file = strings.TrimSuffix(file, " (deleted)")
		program = file
	}
	installed, err := os.Stat(file)
	if err != nil {
		return []found{{program, err.Error()}}, nil
	}
	if os.SameFile(running, installed) {
		return nil, nil
	}
	if running.Size() == installed.Size() { // it may have been installed again
		same, err := sameContent(exe, file)
		if same || err != nil {
			return nil, err
		}
	}
	return []found{{program, fmt.Sprintf("process %d, version %s, runs another program than this file", n.status.PID, n.status.Version)}}, nil
}

// sameContent reports whether two files have the same bytes.
func sameContent(one, other string) (bool, error) {
	var sums [2][sha256.Size]byte
	for i, path := range []string{one, other} {
		f, err := os.Open(path)
		if err != nil {
			return false, err
		}
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		f.Close()
		if err != nil {
			return false, err
		}
		sum.Sum(sums[i][:0])
	}
	return sums[0] == sums[1], nil
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
