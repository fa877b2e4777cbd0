package plugin

import (
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
)

// TestEveryWritableFieldHasAFormat: a field that a plugin can set says which values it
// takes, and there is a check for them.
func TestEveryWritableFieldHasAFormat(t *testing.T) {
	for _, info := range abi.Fields {
		checked := int(info.Format) < len(formats) && formats[info.Format] != nil || recordFormats[info.Format] != nil
		if writable := info.Writable != 0; writable != checked {
			t.Errorf("%v.%s is writable: %t, and has a check: %t", info.Object, info.Name, writable, checked)
		}
	}
}
