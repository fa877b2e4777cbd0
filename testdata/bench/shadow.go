package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
)

// shadowCalls returns how many calls of the plugin of one party its shadow had, and wanted the same. The error is that it is not loaded.
func (n *node) shadowCalls(ctx context.Context) (same int, err error) {
	said, err := exec.CommandContext(ctx, n.bin.wasmproxy, "plugin", "shadow", "01-measured", "-o", "json", "--admin-socket="+n.path(shadowed, "admin.sock")).Output()
	if err != nil {
		return 0, fmt.Errorf("wasmproxy plugin shadow: %w", err)
	}
	var report struct{ Outcomes map[string]int }
	err = json.Unmarshal(said, &report)
	return report.Outcomes["same"], err
}

// awaitShadow waits until the shadow is loaded.
func (n *node) awaitShadow(ctx context.Context) error {
	return n.parties[shadowed].process.Await(ctx, func(ctx context.Context) error {
		_, err := n.shadowCalls(ctx)
		return err
	})
}

// checkShadow tells whether the shadow was called for each container, but for few calls that had no time for it.
func (n *node) checkShadow(ctx context.Context) error {
	got, err := n.shadowCalls(ctx)
	if err != nil {
		return err
	}
	if want := n.parties[shadowed].asked[preCreate]; got > want || got < want*9/10 {
		return fmt.Errorf("the shadow was called %d times for %d calls", got, want)
	}
	return nil
}
