package docker

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestOperations: the pattern of a row leads to this row, and a row that plugins are shown is whole and documented.
func TestOperations(t *testing.T) {
	page, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	for pattern, op := range operations {
		method, path, _ := strings.Cut(pattern, " ")
		for _, version := range []string{"", "/v1.41"} {
			r, err := http.NewRequest(method, "http://docker"+version+"/"+strings.ReplaceAll(path, "*", "a/b"), nil)
			if err != nil {
				t.Fatal(err)
			}
			object := ""
			if strings.Contains(path, "*") {
				object = "a/b"
			}
			got, of, v := operationOf(r)
			if got.name != op.name || of != object || v != strings.TrimPrefix(version, "/v") {
				t.Errorf("%s%s is %s of %q in version %q", version, pattern, got.name, of, v)
			}
		}
		shown := op.serve != nil
		if shown != (len(op.methods()) > 0) || shown != (numbersOf(op.since)[0] > 0) {
			t.Errorf("%s has calls without a version or a function that serves them, or these without calls", pattern)
		}
		word := strings.NewReplacer("DELETE containers/*", "remove", "POST containers/", "", "*/", "").Replace(pattern)
		row := regexp.MustCompile(`(?m)^\|[^|]*\b` + word + `\b[^|]*\| ?` + op.sandbox + ` \| ` + op.container + ` \|$`)
		if shown && !row.Match(page) {
			t.Errorf("no row of Compatibility matches %s", row)
		}
	}
}
