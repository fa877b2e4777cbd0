// Package doctor looks for what is wrong with a proxy and the node that it runs on: in kubelet's
// files, in the container runtime's answers, in files and sockets, in plugins, and in what a
// running proxy tells. It changes nothing.
//
// Checks are a table. A check without what it needs, such as a proxy that runs, reports that it
// was not made: it never passes silently.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/host"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Severity says how much a finding matters.
type Severity string

// The severities, from the worst.
const (
	Error   Severity = "error"   // plugins do not work, or pods do not start
	Warning Severity = "warning" // something works in part, or will fail later
	Note    Severity = "note"    // worth knowing; nothing has to be done
)

// Check is one question that a node is asked. A finding of it always has the same severity, effect
// and remedy.
type Check struct {
	ID       string
	Question string // whose answer is yes on a node in order
	Severity Severity
	Effect   string // of a finding, for people
	Remedy   string // what to do

	find func(context.Context, *node) ([]found, error)
}

// found is what a check has found, and where: a file and the key in it, or a plugin.
type found struct{ where, what string }

// Finding is something that is wrong. Its texts are one printable line each.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Where    string   `json:"where"`
	Found    string   `json:"found"`
	Effect   string   `json:"effect"`
	Remedy   string   `json:"remedy"`
}

// NotChecked is a check that could not be made.
type NotChecked struct {
	Check  string `json:"check"`
	Reason string `json:"reason"`
}

// Fact is something about the node that is neither right nor wrong.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Report is the result of all checks.
type Report struct {
	Findings   []Finding    `json:"findings"` // in the order of the table
	NotChecked []NotChecked `json:"notChecked"`
	Passed     []string     `json:"passed"` // ids of the checks without a finding
	Facts      []Fact       `json:"facts"`
}

// Options say which node is examined.
type Options struct {
	// Root is the directory of the host's files: "/", or where a container has them.
	Root string
	// KubeletConfig is kubelet's configuration, unless kubelet runs and names another.
	KubeletConfig string
	// Settings are the proxy's, with paths of the host; nil if they are not known. SettingsErr is why those of the settings
	// file are not: Settings are the last good ones then, if there are any.
	Settings    *config.Config
	SettingsErr error
	// SettingsFile is where that file is, below Root; empty if there is none.
	SettingsFile string
	// Load loads every plugin as the proxy would, and returns its lines: see daemon.Check.
	Load func(context.Context, *config.Config) ([]string, error)
	// Clock reports whether the kernel says that its clock is synchronized.
	Clock func() (bool, error)
	// Unit asks the host's systemd for properties of a unit; nil if it cannot be asked.
	Unit func(ctx context.Context, name string, properties ...string) (map[string]string, error)
}

// checkTime is how long one check may take. Plugins are compiled in one of them.
const checkTime = time.Minute

// Run makes all checks.
func Run(ctx context.Context, o Options) *Report {
	r := &Report{Findings: []Finding{}, NotChecked: []NotChecked{}, Passed: []string{}, Facts: []Fact{}}
	n := &node{Options: o, root: host.Root(o.Root), config: o.Settings}
	if n.config != nil {
		h := host.Host{Root: n.root, KubeletConfig: cmp.Or(n.KubeletConfig, host.DefaultKubeletConfig), Unit: n.Unit}
		n.process, n.kubeletUnit = h.RunningKubelet(ctx), h.KubeletUnit()
		if named, ok := n.process.Flag("config"); ok {
			h.KubeletConfig = named
		}
		n.files, n.kubeletErr = h.KubeletFiles()

		n.askBackend(ctx)
		n.proxyErr = errors.New("admin-socket is empty, so that the proxy cannot be asked")
		if n.config.AdminSocket != "" {
			ctx, cancel := context.WithTimeout(ctx, answerTime)
			n.status, n.proxyErr = admin.Client{Socket: n.socket(n.config.AdminSocket)}.Status(ctx)
			cancel()
		}
		n.loadPlugins(ctx)
	}

	for _, c := range Checks {
		ctx, cancel := context.WithTimeout(ctx, checkTime)
		var all []found
		err := errors.New("the settings are not known")
		if n.config != nil || c.ID == settingsCheck {
			all, err = c.find(ctx, n)
		}
		cancel()
		for _, f := range all {
			r.Findings = append(r.Findings, Finding{c.ID, c.Severity, n.printable(f.where), n.printable(f.what), c.Effect, c.Remedy})
		}
		switch {
		case err != nil:
			r.NotChecked = append(r.NotChecked, NotChecked{c.ID, n.printable(err.Error())})
		case len(all) == 0:
			r.Passed = append(r.Passed, c.ID)
		}
	}

	fact := func(name, value string) { r.Facts = append(r.Facts, Fact{name, value}) }
	if v := n.version; v != nil {
		fact("container runtime", n.printable(v.GetRuntimeName()+" "+v.GetRuntimeVersion()))
	}
	if len(n.handlers) > 0 {
		fact("runtime handlers", n.printable(strings.Join(n.handlers, " ")))
	}
	if driver := n.driver(); driver != "" {
		fact("cgroup driver of the runtime", driver)
	}
	if n.config != nil {
		if v, err := n.cgroupVersion(); err == nil && v > 0 {
			fact("cgroup version", strconv.Itoa(v))
		}
	}
	return r
}

// printable makes one line of a text, with paths as the host has them.
func (n *node) printable(text string) string {
	if !n.root.Live() {
		text = strings.ReplaceAll(text, strings.TrimSuffix(n.Root, "/")+"/", "/")
	}
	return plugin.Printable(text, 1<<10)
}
