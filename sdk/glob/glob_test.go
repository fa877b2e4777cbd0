package glob_test

import (
	"path"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/sdk/glob"
	"github.com/wasmproxy/wasmproxy/sdk/internal/vectors"
)

func TestVectors(t *testing.T) {
	for _, v := range vectors.Load(t, "..").Glob {
		if got := glob.Accepts(v.Globs, v.Name); got != v.Accepts {
			t.Errorf("%q, %q: got %v", v.Globs, v.Name, got)
		}
		for _, g := range v.Globs {
			g = strings.TrimPrefix(g, "!")
			if _, err := path.Match(g, ""); (err != nil) != v.Invalid || glob.Valid(g) == v.Invalid {
				t.Errorf("%q: valid is %v, path.Match: %v", g, glob.Valid(g), err)
			}
		}
	}
}

// FuzzMatch compares with path.Match, by which the host judges.
func FuzzMatch(f *testing.F) {
	for _, s := range [][2]string{
		{"*-eu-*", "a-eu-eu-b"}, {"a*b*c", "axxbxxbxxc"}, {"*[/a]*c", "a/c"}, {"[^]a]", "a"}, {"[[*]x", "*x"}, {"*?é", "aé"},
		{`[\]]`, "]"}, {`a\`, "a"}, {"[a-é]", "b"}, {"[-a]", "a"}, {"[\xff]", "\xff"}, {"[x]\xff?", "x\xff\xff"}, {"*a]*", "a]"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, g, name string) {
		want, err := path.Match(g, name)
		if _, invalid := path.Match(g, ""); glob.Valid(g) != (invalid == nil) {
			t.Errorf("%q: valid is %v, path.Match: %v", g, glob.Valid(g), invalid)
		}
		if got := glob.Match(g, name); got != (want && err == nil) && glob.Valid(g) {
			t.Errorf("%q, %q: got %v; path.Match: %v, %v", g, name, got, want, err)
		}
	})
}

func TestNoGlobTakesLong(t *testing.T) {
	if glob.Match(strings.Repeat("*a", 1000), strings.Repeat("a", 999)) {
		t.Error("matches")
	}
}
