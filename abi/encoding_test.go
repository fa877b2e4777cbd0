package abi_test

import (
	"maps"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// TestEncodings holds the encodings to bytes that were written by hand from ABI.md.
func TestEncodings(t *testing.T) {
	for _, tt := range []struct{ name, got, want string }{
		{"text", string(abi.AppendText(nil, "ab")), "\x02\x00\x00\x00ab"},
		{"no entries", string(abi.AppendEntries(nil, maps.All(map[string]string{}))), "\x00\x00\x00\x00"},
		{"an entry", string(abi.AppendEntries([]byte("x"), maps.All(map[string]string{"k": "va"}))), "x\x01\x00\x00\x00\x01\x00\x00\x00k\x02\x00\x00\x00va"},
		{"a list", string(abi.AppendList(nil, []string{"a", ""})), "\x02\x00\x00\x00\x01\x00\x00\x00a\x00\x00\x00\x00"},
		{"a record", string(abi.AppendRecord(nil, []string{"to", "from", "empty"}, func(k string) string {
			return map[string]string{"from": "/h", "to": "/c", "other": "x"}[k]
		})), "\x02\x00\x00\x00\x02\x00\x00\x00to\x02\x00\x00\x00/c\x04\x00\x00\x00from\x02\x00\x00\x00/h"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, tt.got, tt.want)
		}
	}
}

func TestMalformed(t *testing.T) {
	good := string(abi.AppendList(nil, []string{"abc", "de"}))
	for n := range len(good) {
		if abi.EachElement(good[:n], func(string) bool { return true }) {
			t.Errorf("a list cut after %d bytes is taken for one", n)
		}
	}
	if abi.EachElement(good+"x", func(string) bool { return true }) {
		t.Error("a list with a byte behind it is taken for one")
	}
	if abi.EachElement("\xff\xff\xff\xff", func(string) bool { return true }) || abi.EachElement("\x01\x00\x00\x00\xff\xff\xff\xff", func(string) bool { return true }) {
		t.Error("a count or length of 4 billion is taken for one")
	}
	entries := string(abi.AppendEntries(nil, maps.All(map[string]string{"k": "v"})))
	for n := range len(entries) {
		if abi.EachEntry(entries[:n], func(string, string) bool { return true }) {
			t.Errorf("entries cut after %d bytes are taken for some", n)
		}
	}
}

// FuzzList reads what anybody may have written: what is taken for a list is
// exactly what the list's own encoding is.
func FuzzList(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x01\x00\x00\x00a\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var list []string
		ok := abi.EachElement(b, func(e []byte) bool { list = append(list, string(e)); return true })
		if ok && string(abi.AppendList(nil, list)) != string(b) {
			t.Errorf("%q is taken for %q", b, list)
		}
		var pairs []string
		ok = abi.EachEntry(b, func(k, v []byte) bool { pairs = append(pairs, string(k), string(v)); return true })
		if ok && string(abi.AppendEntries(nil, inTurn(pairs))) != string(b) {
			t.Errorf("%q is taken for %q", b, pairs)
		}
	})
}

func inTurn(pairs []string) func(func(k, v string) bool) {
	return func(yield func(k, v string) bool) {
		for i := 0; i < len(pairs); i += 2 {
			if !yield(pairs[i], pairs[i+1]) {
				return
			}
		}
	}
}
