// Package nodefeatures writes the file from which Node Feature Discovery labels a node with its
// container runtime, runtime handlers, cgroups and active plugins, so that the nodeSelector of a
// pod or of a RuntimeClass can use them.
//
// NFD's worker reads each file in /etc/kubernetes/node-feature-discovery/features.d that does not
// begin with a dot: a label in each line, NAME=VALUE.
package nodefeatures

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/status"
)

const (
	// prefix is of all labels. NFD accepts its domain without a setting of its own.
	prefix = "feature.node.kubernetes.io/wasmproxy-"
	// maxName and maxValue are Kubernetes' limits of a label's name, without its domain, and value.
	maxName, maxValue = 63, 63
	// maxPlugins keeps the file of the longest names and values below 64 KiB, from which on NFD ignores it.
	maxPlugins = 256
)

// Text returns the file for a node. It has no label that Kubernetes would refuse: names that
// cannot be in a label are left out, and values are cleaned.
func Text(s *status.Status, expires time.Time) []byte {
	f := &file{}
	f.label("runtime.name", s.Backend.Name)
	f.label("runtime.version", s.Backend.Version)
	for _, h := range s.Backend.Handlers {
		if h.Name == "" { // the default, which the runtime lists by its name, too
			continue
		}
		f.label("handler."+h.Name, "true")
		if h.RecursiveReadOnlyMounts {
			f.label("recursive-read-only-mounts."+h.Name, "true")
		}
		if h.UserNamespaces {
			f.label("user-namespaces."+h.Name, "true")
		}
	}
	if s.Cgroup.Version > 0 {
		f.label("cgroup.version", fmt.Sprintf("v%d", s.Cgroup.Version))
	}
	f.label("cgroup.driver", s.Cgroup.Driver)
	n := 0
	for i := range s.Plugins.Plugins {
		p := &s.Plugins.Plugins[i]
		if p.State != status.Active {
			continue
		}
		if n++; n > maxPlugins {
			f.left++
			continue
		}
		version := "" // which its author has written
		if p.Active != nil {
			version = clean(p.Active.Version)
		}
		f.label("plugin."+p.ID, cmp.Or(version, "true"))
	}

	slices.Sort(f.lines)
	var b bytes.Buffer
	b.WriteString("# wasmproxy writes this file, which its setting node-features-file names.\n")
	if !expires.IsZero() {
		fmt.Fprintf(&b, "# +expiry-time=%s\n", expires.UTC().Format(time.RFC3339))
	}
	if f.left > 0 {
		fmt.Fprintf(&b, "# Left out, since their names cannot be in a label, or are too many: %d\n", f.left)
	}
	for _, line := range f.lines {
		b.WriteString(line)
	}
	return b.Bytes()
}

// file is one that is being made.
type file struct {
	lines []string
	left  int // names that are left out
}

var labelName = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// label adds a label, unless there is no value.
func (f *file) label(name, value string) {
	value = clean(value)
	if value == "" {
		return
	}
	if !labelName.MatchString(name) || len("wasmproxy-"+name) > maxName {
		f.left++
		return
	}
	f.lines = append(f.lines, prefix+name+"="+value+"\n")
}

var notInValue = regexp.MustCompile(`[^-A-Za-z0-9_.]+`)

// clean makes a value of a label: characters that cannot be in one become a hyphen, as in
// 1.6.20-ds1, its ends are letters or digits, and it is cut.
func clean(value string) string {
	value = notInValue.ReplaceAllString(value, "-")
	return strings.Trim(value[:min(len(value), maxValue)], "-_.")
}
