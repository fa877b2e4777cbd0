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
	for i := range 10 * minDue {
		keep(fmt.Sprintf("/gone%d.slice", i), true)
	}
	m.Retry(t.Context())
	there := 0
	for _, d := range m.due {
		if !d.Gone() {
			there++
		}
	}
	if there != 3 || len(m.due) > 2*minDue || unavailable != 1 {
		t.Errorf("%d of %d are of units that are there; %d reports that there is no connection", there, len(m.due), unavailable)
	}
}
