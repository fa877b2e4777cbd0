package conformance

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/wasmproxy/wasmproxy/sdk/fixture"
	"github.com/wasmproxy/wasmproxy/sdk/internal/guest"
)

const folder = "../../testdata/abi"

// languages are those that the program is there in.
var languages = []string{"wat", "go", "tinygo", "rust", "c"}

// vectors are all there are.
var vectors = sync.OnceValues(Embedded)

func allVectors(t *testing.T) []Vector {
	t.Helper()
	all, err := vectors()
	if err != nil || len(all) == 0 {
		t.Fatalf("%d vectors: %v", len(all), err)
	}
	return all
}

// empty is the configuration of a program that does nothing.
const empty = `"ff00000000ff00000000"`

// build makes the program in a language.
func build(t *testing.T, language string) *guest.Guest {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guest.wasm")
	guest.Run(t, ".", nil, filepath.Join(folder, "guest", "build.sh"), language, file)
	return guest.Open(t, file)
}

func fixtureOf(t *testing.T, v Vector) fixture.Case {
	t.Helper()
	c, err := v.Fixture()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestConformance plays every vector to the program in every language.
func TestConformance(t *testing.T) {
	all := allVectors(t)
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			p := build(t, language)
			p.Keep(t, empty)
			for _, v := range all {
				t.Run(v.Name, func(t *testing.T) {
					c := fixtureOf(t, v)
					if err := c.Want.Compare(p.Answer(t, c)); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}
