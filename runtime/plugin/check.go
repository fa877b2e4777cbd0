package plugin

import (
	"path"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/wasmproxy/wasmproxy/abi"
)

// reserved is the prefix of the labels and annotations by which kubelet finds
// its own pods and containers again.
const reserved = "io.kubernetes."

// check says whether c may be made in this hook, whatever other plugins do, and
// returns it in its normal form.
func (a *Adjustment) check(c Change) (Change, error) {
	if c.size() > maxValue || a.bytes+c.size() > maxTotal {
		return c, &WriteError{Target: c.Target(), Errno: abi.TooLarge}
	}
	if c.Op == WriteFile {
		return a.checkFile(c)
	}
	info, ok := abi.FieldOf(c.Object, c.Field)
	if !ok {
		return c, &WriteError{Target: c.Target(), Errno: abi.NotFound, Reason: "no field " + strconv.Itoa(int(c.Field))}
	}
	if !c.Op.fits(info.Type) {
		return c, &WriteError{Target: c.Target(), Errno: abi.Invalid, Reason: "not of the field's type"}
	}
	if !info.Writable.Has(a.hook) {
		return c, &WriteError{Target: c.Target(), Errno: abi.ReadOnly, Reason: "in " + a.hook.String()}
	}
	if !c.encodable() {
		return c, &WriteError{Target: c.Target(), Errno: abi.Invalid, Reason: "not UTF-8"}
	}
	errno, reason := a.checkValue(c)
	if errno != abi.OK {
		return c, &WriteError{Target: c.Target(), Errno: errno, Reason: reason}
	}
	return c, nil
}

func (a *Adjustment) checkFile(c Change) (Change, error) {
	if !abi.CgroupWritable(c.Object).Has(a.hook) {
		return c, &WriteError{Target: c.Target(), Errno: abi.ReadOnly, Reason: "in " + a.hook.String()}
	}
	if a.files == nil {
		return c, &WriteError{Target: c.Target(), Errno: abi.Unsupported, Reason: "no cgroup file system"}
	}
	value, err := a.files.Parse(c.Key, c.Text)
	if err != nil {
		return c, err
	}
	c.Text = value
	return c, nil
}

// encodable reports whether a message can hold the change: protobuf takes no
// string that is not UTF-8. The value of an environment variable is bytes.
func (c Change) encodable() bool {
	return utf8.ValidString(c.Key) && (c.isEnv() || utf8.ValidString(c.Text))
}

// fits reports whether the operation is one for fields of type t.
func (op Op) fits(t abi.Type) bool {
	switch op {
	case SetInt64:
		return t == abi.Int64
	case SetText:
		return t == abi.String
	case SetEntry, DeleteEntry:
		return t == abi.Map
	}
	return false
}

func (a *Adjustment) checkValue(c Change) (abi.Errno, string) {
	switch {
	case c.Op == SetInt64:
		return checkInt64(c.Field-abi.Resources, c.Int)
	case c.Field == abi.Resources+abi.CpusetCpus, c.Field == abi.Resources+abi.CpusetMems:
		return checkCpuset(c.Text)
	case c.Field == abi.Resources+abi.HugepageLimits:
		return checkHugepages(c)
	case c.Field == abi.Resources+abi.Unified:
		return a.checkUnified(c.Key)
	case c.isEnv():
		return checkEnv(c)
	case c.Object == abi.Pod && c.Field == abi.PodCgroupParent:
		return checkCgroupParent(c.Text)
	}
	return checkMetadata(c) // labels and annotations
}

// bounds are the inclusive ranges that the kernel and runc take; -1 where it means "unlimited".
var bounds = map[abi.Field]struct {
	min, max  int64
	unlimited bool
}{
	abi.CPUPeriod:   {1_000, 1_000_000, false},
	abi.CPUQuota:    {1_000, 1 << 44, true},
	abi.CPUShares:   {2, 262_144, false},
	abi.MemoryLimit: {1, 1<<63 - 1, true},
	abi.MemorySwap:  {1, 1<<63 - 1, true},
	abi.OOMScoreAdj: {-1_000, 1_000, false},
}

func checkInt64(f abi.Field, v int64) (abi.Errno, string) {
	b, ok := bounds[f]
	if !ok || v >= b.min && v <= b.max || v == -1 && b.unlimited {
		return abi.OK, ""
	}
	return abi.Invalid, strconv.FormatInt(v, 10) + " is outside " + strconv.FormatInt(b.min, 10) + "…" + strconv.FormatInt(b.max, 10)
}

// checkCpuset takes the kernel's list format, "0-3,7"; empty is no restriction.
func checkCpuset(list string) (abi.Errno, string) {
	if list == "" {
		return abi.OK, ""
	}
	for part := range strings.SplitSeq(list, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || from > to {
			return abi.Invalid, strconv.Quote(list) + " is not a list of numbers and ranges"
		}
	}
	return abi.OK, ""
}

func checkHugepages(c Change) (abi.Errno, string) {
	size, unit := strings.CutSuffix(c.Key, "B")
	if !unit || len(size) < 2 || !strings.ContainsAny(size[len(size)-1:], "KMG") {
		return abi.Invalid, "page size is written like 2MB or 1GB"
	}
	if _, err := strconv.ParseUint(size[:len(size)-1], 10, 32); err != nil {
		return abi.Invalid, "page size is written like 2MB or 1GB"
	}
	if _, err := strconv.ParseUint(c.Text, 10, 64); c.Op == SetEntry && err != nil {
		return abi.Invalid, "limit is a number of bytes"
	}
	return abi.OK, ""
}

// checkUnified refuses the unified map on cgroup v1, where runc fails the whole container for it.
func (a *Adjustment) checkUnified(file string) (abi.Errno, string) {
	if a.files == nil || a.files.Version() != 2 {
		return abi.Unsupported, "unified needs cgroup v2"
	}
	if !strings.Contains(file, ".") || strings.ContainsAny(file, "/\x00\n") {
		return abi.Invalid, "not the name of a cgroup v2 file"
	}
	return abi.OK, ""
}

func checkEnv(c Change) (abi.Errno, string) {
	if c.Key == "" || strings.ContainsAny(c.Key, "=\x00") {
		return abi.Invalid, "not the name of an environment variable"
	}
	if strings.ContainsRune(c.Text, 0) {
		return abi.Invalid, "value holds a NUL byte"
	}
	return abi.OK, ""
}

func checkCgroupParent(parent string) (abi.Errno, string) {
	absolute := strings.HasPrefix(parent, "/") && parent == path.Clean(parent)
	slice := strings.HasSuffix(parent, ".slice") && !strings.Contains(parent, "/")
	if !absolute && !slice || strings.ContainsRune(parent, 0) {
		return abi.Invalid, "neither an absolute, clean path nor a systemd slice"
	}
	return abi.OK, ""
}

func checkMetadata(c Change) (abi.Errno, string) {
	switch {
	case c.Key == "" || strings.ContainsRune(c.Key, 0):
		return abi.Invalid, "not a key"
	case strings.HasPrefix(c.Key, reserved):
		return abi.Denied, "keys under " + reserved + " are kubelet's"
	}
	return abi.OK, ""
}

// printable makes a guest's text safe to log and to put into a gRPC status.
func printable(s string, limit int) string {
	if len(s) > limit {
		s = s[:limit]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}
