package rules_test

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cgroup/rules"
)

func TestParse(t *testing.T) {
	tests := []struct {
		version           int
		file, value, want string
		code              abi.Errno
	}{
		{1, "cpu.idle", "1", "1", 0},
		{2, "cpu.idle", " 1\n", "1", 0},
		{2, "cpu.idle", "+01", "1", 0},
		{2, "cpu.idle", "-0", "0", 0},
		{2, "cpu.idle", "2", "", abi.Invalid},
		{2, "cpu.idle", "-1", "", abi.Invalid},
		{2, "cpu.idle", "", "", abi.Invalid},
		{2, "cpu.idle", "true", "", abi.Invalid},
		{2, "cpu.idle", "1 1", "", abi.Invalid},
		{2, "cpu.idle", "1\x00", "", abi.Invalid},
		{2, "cpu.idle", strings.Repeat(" ", 128) + "1", "", abi.TooLarge},
		{1, "cpu.max.burst", "20000", "20000", 0},
		{1, "cpu.max.burst", "17592186044415", "17592186044415", 0},
		{1, "cpu.max.burst", "17592186044416", "", abi.Invalid},
		{1, "cpu.max.burst", "18446744073709551616", "", abi.Invalid},
		{1, "cpu.max.burst", "max", "", abi.Invalid},
		{1, "cpu.max.burst", "1e4", "", abi.Invalid},
		{1, "cpu.bvt_warp_ns", "-1", "-1", 0},
		{2, "cpu.bvt_warp_ns", "2", "2", 0},
		{1, "cpu.bvt_warp_ns", "3", "", abi.Invalid},
		{2, "memory.high", "max", "max", 0},
		{2, "memory.high", "0104857600", "104857600", 0},
		{2, "memory.high", "100Mi", "", abi.Invalid},
		{2, "memory.high", "-1", "", abi.Invalid},
		{1, "memory.high", "104857600", "", abi.Unsupported},
		{2, "io.latency", "8:16 target=75000", "8:16 target=75000", 0},
		{2, "io.latency", "008:016   target=075", "8:16 target=75", 0},
		{2, "io.latency", "8:16 target=max", "8:16 target=max", 0},
		{2, "io.latency", "8:16", "", abi.Invalid},
		{2, "io.latency", "8 target=1", "", abi.Invalid},
		{2, "io.latency", "4096:0 target=1", "", abi.Invalid},
		{2, "io.latency", "0:1048576 target=1", "", abi.Invalid},
		{2, "io.latency", "8:16 target=" + strconv.FormatInt(math.MaxInt64, 10), "", abi.Invalid},
		{2, "io.latency", "8:16 target=1\n8:32 target=1", "", abi.Invalid},
		{1, "io.latency", "8:16 target=1", "", abi.Unsupported},
	}
	for _, tt := range tests {
		t.Run(strconv.Itoa(tt.version)+" "+tt.file+"="+tt.value, func(t *testing.T) {
			got, err := rules.Set(tt.version).Parse(tt.file, tt.value)
			if code := code(err); code != tt.code || got != tt.want {
				t.Errorf("got %q, code %v, error %v; want %q, code %v", got, code, err, tt.want, tt.code)
			}
		})
	}
}

// code is that which a plugin is answered.
func code(err error) (code abi.Errno) {
	errors.As(err, &code)
	return code
}

// FuzzParse holds every parser to what its callers rely on: what comes out is
// printable, short, and parses to itself.
func FuzzParse(f *testing.F) {
	for _, v := range []string{"0", "1", "-1", " 07\t", "max", "8:16 target=75000", "8:16 target=max", "1\n2", "\x00", "9223372036854775808"} {
		for i := range rules.Files {
			f.Add(i, v)
		}
	}
	set := rules.Set(2)
	f.Fuzz(func(t *testing.T, i int, value string) {
		x := rules.Files[uint(i)%uint(len(rules.Files))]
		got, err := set.Parse(x.Name, value)
		if err != nil {
			if code(err) == abi.OK || got != "" {
				t.Fatalf("%s: %q, error without a code: %v", x.Name, got, err)
			}
			return
		}
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r > '~' }) || len(got) > rules.MaxValue {
			t.Fatalf("%s: %q came out as %q", x.Name, value, got)
		}
		if again, err := set.Parse(x.Name, got); err != nil || again != got {
			t.Fatalf("%s: %q came out as %q, and that as %q, %v", x.Name, value, got, again, err)
		}
	})
}
