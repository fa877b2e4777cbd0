package simulate

import (
	"maps"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/sdk/fixture"
)

// What a recorded plugin has set in a call and withdrawn is no change of it; what it withdraws of earlier calls is.
func TestWithdrawnInARecording(t *testing.T) {
	function := func(name string) *abi.Function {
		for i := range abi.Functions {
			if abi.Functions[i].Name == name {
				return &abi.Functions[i]
			}
		}
		t.Fatalf("there is no function %s", name)
		return nil
	}
	object, quota := plugin.Arg{Number: int64(abi.Container)}, plugin.Arg{Number: int64(abi.Resources + abi.CPUQuota)}
	idle := plugin.Arg{Text: "cpu.idle", IsText: true}
	got := want{changes: map[string]string{}}
	for _, q := range []plugin.Question{
		{Function: function("set_i64"), Kind: abi.Container, Args: []plugin.Arg{object, quota, {Number: 20_000}}},
		{Function: function("withdraw"), Kind: abi.Container, Args: []plugin.Arg{object, quota, {IsText: true}}},
		{Function: function("withdraw"), Kind: abi.Container, Args: []plugin.Arg{object, {}, idle}},
	} {
		got.add(&q, true, nil)
	}
	if want := map[string]string{"container cgroup file cpu.idle": fixture.Withdrawn}; !maps.Equal(got.changes, want) {
		t.Errorf("the changes are %v, want %v", got.changes, want)
	}
}
