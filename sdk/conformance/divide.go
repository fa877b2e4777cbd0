package conformance

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/group"
	"github.com/wasmproxy/wasmproxy/abi/spelling"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// needs are names of groups of the ABI without the core, in the order of the table.
type needs []string

func (n needs) with(groups ...string) needs {
	var all needs
	for _, g := range group.All[1:] {
		if slices.Contains(n, g.Name) || slices.Contains(groups, g.Name) {
			all = append(all, g.Name)
		}
	}
	return all
}

func (n needs) covers(others needs) bool {
	return !slices.ContainsFunc(others, func(g string) bool { return !slices.Contains(n, g) })
}

func (n needs) String() string { return strings.Join(n, " and ") }

// divide returns the vector as parts, each with the calls that a host of some groups can
// answer, so that a host is tested of what it has. A vector that fails or is refused is one part.
func (v *Vector) divide() []Vector {
	base := v.base()
	parts, whole := []needs{base}, base
	for _, list := range [][]Call{v.Configure, v.Calls} {
		for i := range list {
			n := base.with(list[i].groups(v.Hook)...)
			known := slices.ContainsFunc(parts, func(p needs) bool { return slices.Equal(p, n) })
			if whole = whole.with(n...); list[i].Function != nil && !known {
				parts = append(parts, n)
			}
		}
	}
	if v.Want.Error != "" || v.Want.Reject != nil || slices.ContainsFunc(v.Calls, func(c Call) bool { return c.Return != 0 }) {
		other := *v
		other.Needs = whole
		return []Vector{other}
	}
	var all []Vector
	for _, n := range parts {
		part := v.part(n)
		asks := func(c Call) bool { return c.Function != nil && slices.Equal(base.with(c.groups(v.Hook)...), n) } // for just these
		if len(parts) == 1 || slices.ContainsFunc(part.Configure, asks) || slices.ContainsFunc(part.Calls, asks) {
			all = append(all, part)
		}
	}
	return all
}

func (v *Vector) base() needs { return needs(nil).with(v.Needs...).with(group.OfHook(v.Hook)) }

// part is the vector with what these groups can answer.
func (v *Vector) part(n needs) Vector {
	other, want := *v, *v.Want
	lacks := func(c Call) bool { return !n.covers(needs(nil).with(c.groups(v.Hook)...)) }
	other.Configure, other.Calls = slices.DeleteFunc(slices.Clone(v.Configure), lacks), slices.DeleteFunc(slices.Clone(v.Calls), lacks)
	want.Changes = fixture.Changes{}
	for target, value := range v.Want.Changes {
		if n.covers(needs(nil).with(targetNeeds(v.Hook, target)...)) {
			want.Changes[target] = value
		}
	}
	if !slices.Contains(n, "kv") {
		want.KV = nil
	}
	if !slices.Contains(n, "metric") {
		want.Metrics = nil
	}
	if extra := slices.DeleteFunc(slices.Clone(n), func(g string) bool { return slices.Contains(v.base(), g) }); len(extra) > 0 {
		other.Name += ": " + extra.String()
	}
	other.Needs, other.Want = n, &want
	return other
}

// groups returns those that a host has to serve to answer the call as the vector says.
func (c *Call) groups(h abi.Hook) (groups []string) {
	if c.Function == nil {
		return nil
	}
	groups = append(groups, group.OfFunction(c.Name()))
	if c.Error == "LIMIT" || c.Error == "TOO_LARGE" {
		groups = append(groups, "limits")
	}
	if _, handle := c.handle(); handle {
		groups = append(groups, "store")
		if c.writes() || c.Name() == "cgroup_set" || c.Name() == "withdraw" {
			groups = append(groups, "others")
		}
	}
	if c.Name() == "cgroup_read" && c.Error == "" { // of handles
		groups = append(groups, "store")
	}
	withdraws := c.Name() == "withdraw"
	changes := withdraws || c.writes()
	if info, ok := c.Field(); ok && changes && c.Error != "READ_ONLY" {
		groups = append(groups, group.OfWrite(h, info.Writing))
	}
	if withdraws && fmt.Sprint(c.Args[1]) == "0" {
		groups = append(groups, "cgroup")
	}
	if c.Name() == "feature" { // which tells whether the host has a group
		n, _ := spelling.Integer(c.Args[0])
		switch abi.Feature(n) {
		case abi.FeatureCgroupV2, abi.FeatureCgroupFiles:
			groups = append(groups, "cgroup")
		case abi.FeatureUpdate:
			groups = append(groups, "others")
		case abi.FeatureKV:
			groups = append(groups, "kv")
		}
	}
	return groups
}

// targetNeeds returns the groups that a change is of.
func targetNeeds(h abi.Hook, target string) (groups []string) {
	object, _, _ := strings.Cut(target, " ")
	if object != target && strings.Contains(target, " cgroup file ") {
		groups = append(groups, "cgroup")
	}
	object, field, _ := strings.Cut(target, ".")
	if strings.Contains(object, "(") {
		return append(groups, "store", "others")
	}
	field, _, _ = strings.Cut(field, "[")
	for _, f := range abi.Fields {
		if f.Object.String() == object && f.Name == field {
			groups = append(groups, group.OfWrite(h, f.Writing))
		}
	}
	return groups
}
