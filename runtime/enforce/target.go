package enforce

import (
	"cmp"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
	"github.com/wasmproxy/wasmproxy/runtime/crifield"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// OfResource reports whether a change is one of a container's resources, and not of a file.
func OfResource(c *plugin.Change) bool {
	return !c.IsFile() && c.Kind() == abi.Container && c.Field >= abi.Resources
}

// TargetOf is the ledger's name of what a change of a file or resource sets.
func TargetOf(c *plugin.Change) Target {
	if c.IsFile() {
		return File(c.Key)
	}
	return fieldTarget(c.Field, c.Key)
}

// ValueOf is what it sets, as the ledger has it. CRI says both 0 and -1 for no quota, and an update can only say -1.
func ValueOf(c *plugin.Change) string {
	switch {
	case c.Op != plugin.SetInt64:
		return c.Text
	case c.Field == abi.Resources+abi.CPUQuota:
		return strconv.FormatInt(cmp.Or(c.Int, -1), 10)
	}
	return strconv.FormatInt(c.Int, 10)
}

// fieldTargets are the ledger's names of resources.
var fieldTargets = func() (all [plugin.MaxField]Target) {
	for _, row := range abi.Fields {
		if name, ok := strings.CutPrefix(row.Name, "resources."); ok && row.Object == abi.Container {
			all[row.Field] = Field(name)
		}
	}
	return all
}()

// fieldTarget is the ledger's name of a resource, such as "field cpu_quota".
func fieldTarget(f abi.Field, key string) Target {
	if key == "" {
		return fieldTargets[f]
	}
	return fieldTargets[f] + Target("["+key+"]")
}

// same is the target that is another name of a file's value; empty if there is none.
func (t Target) same() Target {
	if file, ok := t.File(); ok {
		if other := rules.OtherView(file); other != "" {
			return File(other)
		}
	}
	return ""
}

// Opposed returns the plugin whose wish holds for what a change sets, among those that count, if that wants another value; "" if
// there is none.
func (e *Enforcer) Opposed(o crifield.Object, c *plugin.Change, counts func(plugin string) bool) (first string) {
	record, target := e.Ledger.Record(e.ID(o)), TargetOf(c)
	if w, ok := record.Owner(target.same(), counts); ok && c.Op == plugin.WriteFile {
		return w.Plugin
	}
	if w, ok := record.Owner(target, counts); ok && w.Value != ValueOf(c) {
		return w.Plugin
	}
	return ""
}

// Values are the resources that a request names.
func Values(r *runtimeapi.LinuxContainerResources) map[Target]string {
	all := map[Target]string{}
	o := crifield.Object{Container: &crifield.Container{Resources: crifield.Resources{Now: r}}}
	for _, row := range abi.Fields {
		if row.Object != abi.Container || row.Field < abi.Resources {
			continue
		}
		switch row.Type {
		case abi.Int64:
			if n, _ := o.Int64(row.Field); n != 0 {
				all[fieldTarget(row.Field, "")] = strconv.FormatInt(n, 10)
			}
		case abi.String:
			if text, _ := o.Text(row.Field); text != "" {
				all[fieldTarget(row.Field, "")] = text
			}
		case abi.Map:
			if entries, errno := o.Entries(row.Field); errno == abi.OK {
				for k, v := range entries {
					all[fieldTarget(row.Field, k)] = v
				}
			}
		}
	}
	return all
}

// ChangeTo is the change that gives a resource of a container a value of the ledger; false if
// there is none.
func ChangeTo(t Target, value string) (c plugin.Change, ok bool) {
	name, key, _ := strings.Cut(strings.TrimPrefix(string(t), string(Field(""))), "[")
	for _, row := range abi.Fields {
		if row.Object != abi.Container || row.Field < abi.Resources || row.Name != "resources."+name {
			continue
		}
		c = plugin.Change{Op: plugin.SetText, Object: abi.Container, Field: row.Field, Key: strings.TrimSuffix(key, "]"), Text: value}
		switch {
		case row.Type == abi.Int64:
			n, err := strconv.ParseInt(value, 10, 64)
			c.Op, c.Text, c.Int = plugin.SetInt64, "", n
			return c, err == nil
		case row.Type == abi.Map && value == "":
			c.Op = plugin.DeleteEntry
		case row.Type == abi.Map:
			c.Op = plugin.SetEntry
		}
		return c, true
	}
	return c, false
}
