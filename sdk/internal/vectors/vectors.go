// Package vectors reads the vectors of the library for authors, sdk/testdata/library.json, which its tests in Go, Rust and C
// share. It is for tests; nothing else imports it.
package vectors

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// File is the whole file.
type File struct {
	JSON     []JSON     `json:"json"`
	Glob     []Glob     `json:"glob"`
	Image    []Image    `json:"image"`
	Quantity []Quantity `json:"quantity"`
	Decimal  []Decimal  `json:"decimal"`
}

// JSON is a text, and what is read of it, each time anew.
type JSON struct {
	Text  string `json:"text"`
	Error string `json:"error,omitempty"` // of the whole
	Reads []Read `json:"reads,omitempty"`
}

// Read is a call of a getter.
type Read struct {
	Get    string   `json:"get"`
	In     string   `json:"in,omitempty"` // the key of the object within that is read; "" for the whole
	Key    string   `json:"key,omitempty"`
	Least  int64    `json:"least,omitempty"`  // of int
	Most   int64    `json:"most,omitempty"`   // of int
	Values []string `json:"values,omitempty"` // of one_of
	Is     string   `json:"is,omitempty"`     // as text, lists with | between; what is not there is -
	Error  string   `json:"error,omitempty"`
}

// Glob is a list of globs, and whether it accepts a name.
type Glob struct {
	Globs   []string `json:"globs"`
	Name    string   `json:"name,omitempty"`
	Accepts bool     `json:"accepts,omitempty"`
	Invalid bool     `json:"invalid,omitempty"` // none of the globs is one
}

// Image is a name, and what it is taken apart to.
type Image struct {
	Name       string `json:"name"`
	Registry   string `json:"registry,omitempty"`
	Repository string `json:"repository,omitempty"`
	Tag        string `json:"tag,omitempty"`
	Digest     string `json:"digest,omitempty"`
	Short      bool   `json:"short,omitempty"`
	ID         bool   `json:"id,omitempty"`
	Error      string `json:"error,omitempty"`
}

// Quantity is a text, and the quantity that it is.
type Quantity struct {
	Text  string `json:"text"`
	Value int64  `json:"value,omitempty"`
	Milli int64  `json:"milli,omitempty"`
	Error string `json:"error,omitempty"`
}

// Decimal is a number with at most so many decimals, in units of the last.
type Decimal struct {
	Text     string `json:"text"`
	Decimals int    `json:"decimals,omitempty"`
	Value    int64  `json:"value,omitempty"`
	Error    string `json:"error,omitempty"`
}

// Load reads the file. dir is that of package sdk.
func Load(t testing.TB, dir string) (f File) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "testdata/library.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.JSON)*len(f.Glob)*len(f.Image)*len(f.Quantity)*len(f.Decimal) == 0 {
		t.Fatal("a part has no vectors")
	}
	return f
}
