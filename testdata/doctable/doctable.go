// Package doctable compares a table in the documents with the one that the code makes. It is for
// tests alone.
package doctable

import (
	"os"
	"strings"
	"testing"
)

// Check wants that the file has the table between the comments "begin: NAME" and "end: NAME". With
// update it writes the table there.
func Check(t testing.TB, update bool, file, name, table string) {
	t.Helper()
	begin, end := "<!-- begin: "+name+" -->\n", "<!-- end: "+name+" -->\n"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), begin)
	found, after, ends := strings.Cut(rest, end)
	switch {
	case !begins || !ends:
		t.Fatalf("%s has no place for the table between %q and %q", file, begin, end)
	case update:
		if err := os.WriteFile(file, []byte(before+begin+table+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case found != table:
		t.Errorf("the table of %s in %s is another than the code's: run make generate", name, file)
	}
}
