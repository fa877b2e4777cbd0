package group

import (
	"strconv"
	"strings"
)

// Floor is the least that every host allows. A host's own limits may be higher, and a floor does not sink.
type Floor struct {
	Name   string // with the unit at its end, "bytes" or "ms", unless it counts
	Number int64
	Of     string // for people
}

// Floors is the table of floors.
var Floors = []Floor{
	{"module_bytes", 2 << 20, "a module"},
	{"imports", 64, "imports of a module"},
	{"exports", 128, "exports of a module"},
	{"table_entries", 65_536, "table entries of a module"},
	{"functions", 20_000, "functions of a module"},
	{"locals", 2_000, "locals of a function"},
	{"memory_bytes", 16 << 20, "memory of an instance"},
	{"instructions", 5_000_000, "instructions of one call"},
	{"call_ms", 100, "time of one call"},
	{"start_instructions", 25_000_000, "instructions of each function before the first event"},
	{"stack_bytes", 256 << 10, "parameters, locals and operands on the stack"},
	{"host_calls", 1_000, "calls of host functions in one call"},
	{"changes", 256, "changes in one call"},
	{"change_bytes", 256 << 10, "a change with its key"},
	{"changes_bytes", 1 << 20, "all changes of one call"},
	{"argument_bytes", 256 << 10, "an argument"},
	{"entries", 100_000, "entries or elements of one `map_dump` or `list_dump`"},
	{"config_bytes", 1 << 20, "the configuration"},
	{"log_bytes", 64 << 10, "the log of one call; more is dropped"},
	{"log_line_bytes", 4 << 10, "a line of the log; more is cut"},
	{"reason_bytes", 1 << 10, "a reason given to `reject`, `fail` or `abort`; more is cut"},
	{"handles", 4_096, "handles in one call"},
	{"kv_keys", 1_024, "keys of kv of a plugin"},
	{"kv_bytes", 1 << 20, "kv of a plugin"},
	{"kv_key_bytes", 256, "a key of kv"},
	{"kv_value_bytes", 64 << 10, "a value of kv"},
	{"metrics", 64, "metrics of a plugin"},
	{"metric_name_bytes", 128, "the name of a metric"},
	{"read_files", 1_024, "files of one `cgroup_read`"},
	{"read_bytes", 1 << 20, "bytes of one `cgroup_read`"},
}

// Text returns the number as people write it: 16,384 or 16 KiB.
func (f Floor) Text() string {
	isBytes := strings.HasSuffix(f.Name, "_bytes")
	switch n := f.Number; {
	case isBytes && n >= 1<<20:
		return thousands(n>>20) + " MiB"
	case isBytes && n >= 1<<10:
		return thousands(n>>10) + " KiB"
	case isBytes:
		return thousands(n) + " bytes"
	case strings.HasSuffix(f.Name, "_ms"):
		return thousands(n) + " ms"
	default:
		return thousands(n)
	}
}

func thousands(n int64) string {
	if n < 1_000 {
		return strconv.FormatInt(n, 10)
	}
	rest := strconv.FormatInt(n%1_000+1_000, 10)
	return thousands(n/1_000) + "," + rest[1:]
}
