package conformance

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

var (
	section   = regexp.MustCompile(`(?m)^### ([a-z_0-9]+)$`)
	errorWord = regexp.MustCompile(`\b[A-Z]{2,}(_[A-Z]+)?\b`)
	asWith    = regexp.MustCompile("rrors as\\s+with\\s+`([a-z_0-9]+)`")
)

// documentedErrors are those that the specification names in the section of each function.
func documentedErrors(t *testing.T) map[string][]string {
	t.Helper()
	var text []byte
	for _, page := range []string{"ABI.md", "OPTIONAL.md"} {
		more, err := os.ReadFile("../../abi/" + page)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, more...)
	}
	errors, like := map[string][]string{}, map[string]string{}
	places := section.FindAllSubmatchIndex(text, -1)
	for i, at := range places {
		end := len(text)
		if i+1 < len(places) {
			end = places[i+1][0]
		}
		name, body := string(text[at[2]:at[3]]), string(text[at[1]:end])
		body, _, _ = strings.Cut(body, "\n## ")
		for _, word := range errorWord.FindAllString(body, -1) {
			if _, known := abi.ErrnoByName(word); known && !slices.Contains(errors[name], word) {
				errors[name] = append(errors[name], word)
			}
		}
		if m := asWith.FindStringSubmatch(body); m != nil {
			like[name] = m[1]
		}
	}
	for name, other := range like {
		errors[name] = append(errors[name], errors[other]...)
	}
	if len(like) < 8 || len(errors["set_i64"]) != 8 {
		t.Fatalf("the specification is not written as this test reads it: %v, %v", errors, like)
	}
	return errors
}
