package simulate

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// first is what a fixture or a recording begins with. Each of them may be a list.
type first struct {
	Hook   string `json:"hook"`   // of a fixture
	Method string `json:"method"` // of a recording, or
	Point  string `json:"point"`
}

// kindPod finds a Pod in YAML or JSON. A request is no text, or has no kind.
var kindPod = regexp.MustCompile(`(?m)^\s*[{]?\s*"?kind"?\s*:\s*"?Pod"?\s*(#.*)?,?\s*$|"kind"\s*:\s*"Pod"`)

// otherKind finds what an object of the cluster is, in YAML. JSON says it at no place of its own.
var otherKind = regexp.MustCompile(`(?m)^kind:\s*"?(\w+)`)

// badValue is protojson's word for a value of a wrong form, such as one of an environment
// variable that is not in base64.
var badValue = regexp.MustCompile(`(invalid value for bytes field \w+): .*`)

// withoutValue is the error without such a value, which may be a secret.
func withoutValue(err error) error {
	if err == nil || !badValue.MatchString(err.Error()) {
		return err
	}
	return errors.New(badValue.ReplaceAllString(err.Error(), "$1: it is not in base64"))
}

func readFixture(file []byte, hook abi.Hook, s Setting) (*Event, error) {
	cases, err := fixture.Parse("case", file)
	if err != nil {
		return nil, err
	}
	var found, names []string
	var first fixture.Case
	for _, c := range cases {
		name := fmt.Sprintf("%q (%v)", c.Name, c.Hook)
		names = append(names, name)
		named := s.Case == "" || s.Case == c.Name
		if !named || hook != 0 && c.Hook != hook {
			continue
		}
		if len(found) == 0 {
			first = c
		}
		found = append(found, name)
	}
	if len(found) == 0 {
		wanted := []string{s.Case, hook.String()}
		return nil, fmt.Errorf("no case is %s; there are %s",
			strings.Join(slices.DeleteFunc(wanted, func(w string) bool { return w == "" }), " for "), strings.Join(names, ", "))
	}
	e, err := FromFixture(first, s.CgroupVersion)
	if err == nil && len(found) > 1 {
		others := strings.Join(found[1:], ", ")
		e.Notes = append(e.Notes, fmt.Sprintf("this is %s, the first of %d cases that fit; choose another with --case or --hook: %s", found[0], len(found), others))
	}
	return e, err
}
