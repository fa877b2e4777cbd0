package plugin_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Of a call that is exempt no chain of plugins makes an error, whichever of them fail or refuse. Exactly the changes of
// the others are applied, in their order, and each plugin that would have kept the call is told of.
func TestExemptCallHasTheChangesOfOthers(t *testing.T) {
	ends := []func(*plugin.Adjustment) error{
		func(*plugin.Adjustment) error { return nil },
		func(*plugin.Adjustment) error { return errors.New("broken") },
		func(*plugin.Adjustment) error { panic("unreachable") },
		func(adj *plugin.Adjustment) error { return adj.Reject(0, "no") },
		func(*plugin.Adjustment) error { return &plugin.Rejection{Reason: "no"} },
	}
	const wellEnd, firstRefusal = 0, 3
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, seed))
		var members []plugin.Member
		var stay, told []string
		for i := range 1 + random.IntN(5) {
			id, end, policy := fmt.Sprintf("%d0-a", i), random.IntN(len(ends)), plugin.FailurePolicy(random.IntN(2))
			members = append(members, member(id, policy, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
				if err := adj.SetEntry(abi.Container, abi.ContainerAnnotations, "example.com/"+id, id); err != nil {
					return err
				}
				return ends[end](adj)
			}))
			switch {
			case end == wellEnd:
				stay = append(stay, id)
			case end >= firstRefusal, policy == plugin.Fail:
				told = append(told, id)
			}
		}
		var events observe.Recorder
		s := &subject{hook: abi.PreCreateContainer, exempt: true}
		owned, err := plugin.NewChain(&events, 2, members...).Dispatch(t.Context(), nil, s)
		var exempted []string
		for _, e := range observe.All[*observe.CallExempted](events.Take()) {
			exempted = append(exempted, e.Plugin)
		}
		if err != nil || !slices.Equal(owners(owned), stay) || !slices.Equal(owners(s.applied), stay) || !slices.Equal(exempted, told) {
			t.Fatalf("seed %d: error %v, changes of %v and applied of %v, want %v; told of %v, want %v", seed, err, owners(owned), owners(s.applied), stay, exempted, told)
		}
	}
}

func owners(changes []plugin.Owned) (ids []string) {
	for _, o := range changes {
		ids = append(ids, o.Plugin)
	}
	return ids
}

// The reason of an exempted call has no secret that the plugin has read.
func TestExemptedCallHasNoSecret(t *testing.T) {
	var events observe.Recorder
	s := &subject{hook: abi.PreCreateContainer, exempt: true, secrets: []string{"hunter2secret"}}
	tells := func(context.Context, plugin.Event, *plugin.Adjustment) error {
		return errors.New("not with hunter2secret")
	}
	if _, err := plugin.NewChain(&events, 2, member("10-a", plugin.Fail, tells)).Dispatch(t.Context(), nil, s); err != nil {
		t.Fatal(err)
	}
	all := observe.All[*observe.CallExempted](events.Take())
	if len(all) != 1 || all[0].Reason != "not with (hidden)" || all[0].Namespace != "ns" {
		t.Errorf("told %+v", all)
	}
}
