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

func writeView() abi.View {
	w := abi.NewViewWriter(6, 2) // of which 4 are there, and longer
	w.Int64(1, -2)
	w.Text(2, "web")
	w.Text(3, "")
	w.Text(6, "burstable")
	w.Int64(7, 0)
	return w.View()
}

func TestView(t *testing.T) {
	const want = "\x54\x00\x00\x00" + "\x04\x00\x00\x00" +
		"\x01\x00\x00\x00\x01\x00\x00\x00\xfe\xff\xff\xff\xff\xff\xff\xff" +
		"\x02\x00\x00\x00\x02\x00\x00\x00\x48\x00\x00\x00\x03\x00\x00\x00" +
		"\x06\x00\x00\x00\x02\x00\x00\x00\x4b\x00\x00\x00\x09\x00\x00\x00" +
		"\x07\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" +
		"web" + "burstable"
	v := writeView()
	if string(v) != want || len(v) != 0x54 {
		t.Errorf("got  %q\nwant %q", v, want)
	}
	if n, ok := v.Int64(1); n != -2 || !ok {
		t.Errorf("field 1 is %d, %v", n, ok)
	}
	if n, ok := v.Int64(7); n != 0 || !ok {
		t.Errorf("field 7 is %d, %v", n, ok)
	}
	if _, ok := v.Int64(3); ok {
		t.Error("field 3 is there")
	}
	if _, ok := v.Int64(2); ok {
		t.Error("the text in field 2 is taken for a number")
	}
	if got := string(v.Text(2)); got != "web" {
		t.Errorf("field 2 is %q", got)
	}
	if v.Text(1) != nil || v.Text(3) != nil || v.Text(9) != nil {
		t.Error("there is a text that is a number, empty, or not written")
	}
}

// FuzzView looks into what is no view. It must not go beyond its end.
func FuzzView(f *testing.F) {
	f.Add([]byte(writeView()), int32(2))
	f.Fuzz(func(t *testing.T, b []byte, field int32) {
		v := abi.View(b)
		v.Int64(abi.Field(field))
		if got := v.Text(abi.Field(field)); len(got) > len(b) {
			t.Errorf("%d bytes out of %d", len(got), len(b))
		}
	})
}
