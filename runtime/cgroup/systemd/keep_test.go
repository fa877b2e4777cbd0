package systemd

import (
	"context"
	"fmt"
	"testing"
)

// Without a connection what is due is remembered, but not that of units which have gone.
func TestDueIsThatOfUnitsWhichAreThere(t *testing.T) {
	unavailable := 0
	m := New(2, nil, Events{Unavailable: func(error) { unavailable++ }})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.Run(ctx)
	m.hasTried()
	keep := func(group string, gone bool) {
		m.Keep(t.Context(), Kept{group, "pids.max"}, Files{Read: func(string) string { return "" }, Gone: func() bool { return gone }})
	}
	for i := range 3 {
		keep(fmt.Sprintf("/there%d.slice", i), false)
	}
	for i := range 1000 {
		keep(fmt.Sprintf("/gone%d.slice", i), true)
	}
	m.Retry(t.Context()) // as each scan does
	if len(m.due) != 3 || len(m.written) != 3 || unavailable != 1 {
		t.Errorf("%d values and %d writes are due; %d reports that there is no connection", len(m.due), len(m.written), unavailable)
	}
}
