package main

import (
	"encoding/json"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/abi/group"
)

// patterns are the forms of texts and keys.
var patterns = map[abi.Format]*regexp.Regexp{
	abi.CDIName:   regexp.MustCompile(`^[A-Za-z][\w.-]*/[A-Za-z][\w.-]*=[A-Za-z0-9][\w.:-]*$`),
	abi.CPUList:   regexp.MustCompile(`^$|^\d+(-\d+)?(,\d+(-\d+)?)*$`),
	abi.PageSizes: regexp.MustCompile(`^\d+(KB|MB|GB)$`),
}

// files are the cgroup files that this host sets by unified, with the form of their values.
var files = map[string]*regexp.Regexp{
	"cpu.max":    regexp.MustCompile(`^(max|\d{4,14})( \d{4,7})?$`),
	"cpu.weight": regexp.MustCompile(`^\d{1,5}$`),
	"cpu.idle":   regexp.MustCompile(`^[01]$`),
	"memory.min": bytesOrMax, "memory.low": bytesOrMax, "memory.high": bytesOrMax, "memory.max": bytesOrMax, "memory.swap.max": bytesOrMax,
}

var bytesOrMax = regexp.MustCompile(`^(max|\d{1,19})$`)

// check looks at the value of a change that is allowed. What NRI cannot do is UNSUPPORTED.
func (e *event) check(c *change) abi.Errno {
	s, isText := c.value.(string)
	if !utf8.ValidString(c.key) || isText && c.info.Format != abi.Variables && !utf8.ValidString(s) {
		return abi.Invalid
	}
	if group.OfWrite(e.hook, c.info.Writing) != group.Core {
		return abi.Unsupported
	}
	ok := true
	switch c.info.Format {
	case abi.MemoryBytes, abi.Period, abi.Quota, abi.Score, abi.Shares:
		n, _ := c.value.(json.Number).Int64()
		low, high, unlimited := c.info.Format.Range()
		ok = n >= low && n <= high || unlimited && n == -1
	case abi.CPUList:
		ok = patterns[abi.CPUList].MatchString(s) && ascending(s)
	case abi.KeysOfPlugins:
		if strings.HasPrefix(c.key, "io.kubernetes.") {
			return abi.Denied
		}
		ok = c.key != "" && !strings.Contains(c.key, "\x00")
	case abi.Variables:
		ok = c.key != "" && !strings.ContainsAny(c.key, "=\x00") && !strings.Contains(s, "\x00")
	case abi.PageSizes:
		_, err := strconv.ParseUint(s, 10, 64)
		ok = patterns[abi.PageSizes].MatchString(c.key) && (err == nil || c.value == nil)
	case abi.CgroupFiles:
		return e.checkUnified(c, s)
	case abi.CDIName:
		ok = c.key != "" && (c.value == nil || patterns[abi.CDIName].MatchString(c.key))
	case abi.MountRecord, abi.DeviceRecord:
		ok = c.key != "" && (c.value == nil || checkRecord(c.info.Format, c.value.(map[string]any)))
	}
	if !ok {
		return abi.Invalid
	}
	return e.possible(c)
}

func (e *event) checkUnified(c *change, value string) abi.Errno {
	form, known := files[c.key]
	switch {
	case !e.unified:
		return abi.Unsupported
	case !strings.Contains(c.key, "."):
		return abi.Invalid
	case !known:
		return abi.Denied
	case c.value != nil && !form.MatchString(value):
		return abi.Invalid
	}
	return e.possible(c)
}

// possible reports what NRI cannot delete and the container has.
func (e *event) possible(c *change) abi.Errno {
	if c.value != nil || c.info.Format != abi.CgroupFiles && c.info.Format != abi.CDIName && c.info.Format != abi.PageSizes {
		return abi.OK
	}
	switch have := e.objects[abi.Container][c.info.Name].(type) {
	case map[string]any:
		if _, there := have[c.key]; there {
			return abi.Unsupported
		}
	case []any:
		for _, element := range have {
			if element == c.key {
				return abi.Unsupported
			}
		}
	}
	return abi.OK
}

func ascending(list string) bool {
	for part := range strings.SplitSeq(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		low, _ := strconv.Atoi(from)
		high, _ := strconv.Atoi(to)
		if isRange && low > high {
			return false
		}
	}
	return true
}

// record reads a record; ok is false if it is malformed. "false" is as good as nothing.
func record(keys []string, encoded string) (values map[string]any, ok bool) {
	values, seen := map[string]any{}, map[string]bool{}
	well := abi.EachEntry(encoded, func(k, v string) bool {
		known := false
		for _, key := range keys {
			known = known || key == k
		}
		ok = known && !seen[k]
		if seen[k] = true; v != "" && v != "false" {
			values[k] = v
		}
		return ok
	})
	return values, well && ok
}

func checkRecord(f abi.Format, values map[string]any) bool {
	get := func(key string) string { v, _ := values[key].(string); return v }
	for _, key := range []string{"container_path", "host_path"} {
		if p := get(key); !path.IsAbs(p) || p != path.Clean(p) {
			return false
		}
	}
	if f == abi.DeviceRecord {
		p := get("permissions")
		return p != "" && strings.Trim(p, "rwm") == ""
	}
	for _, key := range []string{"readonly", "selinux_relabel", "recursive_read_only"} {
		if v := get(key); v != "" && v != "true" {
			return false
		}
	}
	propagation := get("propagation")
	private := propagation == "" || propagation == "private"
	if get("recursive_read_only") == "true" && (get("readonly") == "" || !private) {
		return false
	}
	return private || propagation == "host_to_container" || propagation == "bidirectional"
}
