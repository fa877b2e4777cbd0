package conformance

import (
	"bytes"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// TestUndeclared grants a vector what is withheld from it, to a program whose manifest
// does not declare it: the answers are the same.
func TestUndeclared(t *testing.T) {
	played := 0
	for _, v := range allVectors(t) {
		if len(v.Withheld) == 0 {
			continue
		}
		c, p := fixtureOf(t, v), build(t, "wat")
		c.Grant = abi.AllCapabilities
		for _, name := range v.Withheld {
			p.Module = undeclare(t, p.Module, name)
		}
		// What the vector is not granted is not declared either.
		for _, name := range (abi.AllCapabilities &^ abi.DefaultGrant()).Names() {
			p.Module = undeclare(t, p.Module, name)
		}
		if err := c.Want.Compare(p.Answer(t, c)); err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		played++
	}
	if played == 0 {
		t.Error("nothing is withheld from any vector")
	}
}

// undeclare puts a name that no version knows in the place of a capability.
func undeclare(t *testing.T, module []byte, name string) []byte {
	t.Helper()
	other := `"` + string(bytes.Repeat([]byte("x"), len(name))) + `"`
	if bytes.Count(module, []byte(`"`+name+`"`)) != 1 {
		t.Fatalf("the manifest does not declare %s", name)
	}
	return bytes.Replace(module, []byte(`"`+name+`"`), []byte(other), 1)
}
