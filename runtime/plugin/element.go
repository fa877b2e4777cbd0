package plugin

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// clean reports whether a path is absolute and has only one way to be written.
func clean(p string) bool {
	return strings.HasPrefix(p, "/") && p == path.Clean(p) && !strings.ContainsRune(p, 0)
}

// checkElement checks what a Set is to take or to lose, and brings it into its
// normal form: with its key, and a record's own keys in their order.
func (s *scope) checkElement(c *Change, info *abi.FieldInfo) error {
	record := recordOf(c.Kind(), c.Field)
	if c.Op == DeleteElement {
		if c.Key == "" || strings.ContainsRune(c.Key, 0) {
			return refused(c, abi.Invalid, wantKey)
		}
		return nil
	}
	if record == nil {
		c.Key = c.Text
		if err := s.checkFormat(c, info); err != nil {
			return err
		}
		return s.of.Rights.Bounds.check(c, info.Writing, "")
	}
	var reason string
	values := map[string]string{}
	ok := abi.EachEntry(c.Text, func(k, v string) bool {
		_, twice := values[k]
		switch {
		case !slices.Contains(record.Keys, k):
			reason = "it has no key " + strconv.Quote(Printable(k, 64))
		case twice:
			reason = "it has " + k + " twice"
		}
		if v == "false" { // which is as good as nothing
			v = ""
		}
		values[k] = v
		return reason == ""
	})
	if !ok {
		reason = "its encoding is not that of a record"
	}
	if reason != "" {
		return refused(c, abi.Invalid, reason)
	}
	c.Key = values[record.Key]
	c.Text = string(abi.AppendRecord(nil, record.Keys, func(k string) string { return values[k] }))
	for _, key := range []string{"container_path", "host_path"} { // which mounts and devices have
		if !clean(values[key]) {
			return refused(c, abi.Invalid, key+" "+quoted(values[key])+": want an absolute, clean path")
		}
	}
	if values["container_path"] == "/" {
		return refused(c, abi.Invalid, "container_path is the root of the container")
	}
	if check := recordFormats[info.Format]; check != nil {
		if reason = check(values); reason != "" {
			return refused(c, abi.Invalid, reason)
		}
	}
	return s.of.Rights.Bounds.check(c, info.Writing, values["host_path"])
}

const wantKey = "want a key of one byte or more, without NUL bytes"

// checkDevice takes the permissions of the kernel's device cgroup.
func checkDevice(values map[string]string) string {
	if p := values["permissions"]; p == "" || strings.Trim(p, "rwm") != "" || len(p) > 3 {
		return "permissions " + quoted(p) + ": want any of r, w and m"
	}
	return ""
}

func checkMount(values map[string]string) string {
	for _, key := range []string{"readonly", "selinux_relabel", "recursive_read_only"} {
		if v := values[key]; v != "" && v != "true" {
			return key + " " + quoted(v) + ": want true or false"
		}
	}
	switch values["propagation"] {
	case "", "private", "host_to_container", "bidirectional":
	default:
		return "propagation " + quoted(values["propagation"]) + ": want private, host_to_container or bidirectional"
	}
	private := values["propagation"] == "" || values["propagation"] == "private"
	if values["recursive_read_only"] != "" && (values["readonly"] == "" || !private) {
		return "recursive_read_only needs readonly and no propagation" // CRI says so
	}
	return ""
}
