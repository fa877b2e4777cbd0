package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"
)

// Without a connection what is due is remembered, but not that of units which have gone.
func TestDueIsThatOfUnitsWhichAreThere(t *testing.T) {
	unavailable := 0
	m := New(nil, Events{Unavailable: func(error) { unavailable++ }})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m.Run(ctx)
	m.hasTried()
	keep := func(group string, read func(string) (string, error)) {
		m.Keep(t.Context(), 2, Kept{group, "pids.max"}, Files{Read: read})
	}
	for i := range 3 {
		keep(fmt.Sprintf("/there%d.slice", i), func(string) (string, error) { return "7", nil })
	}
	for i := range 10 * minDue {
		keep(fmt.Sprintf("/gone%d.slice", i), func(string) (string, error) { return "", fs.ErrNotExist })
	}
	m.Retry(t.Context())
	there := 0
	for k := range m.due {
		if _, err := m.due[k].Read(""); !errors.Is(err, fs.ErrNotExist) {
			there++
		}
	}
	if there != 3 || len(m.due) > 2*minDue || unavailable != 1 {
		t.Errorf("%d of %d are of units that are there; %d reports that there is no connection", there, len(m.due), unavailable)
	}
}
