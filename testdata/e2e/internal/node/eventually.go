package node

import (
	"testing"
	"time"
)

// Eventually calls try until it returns nil, and fails the test with its last
// error if that takes longer than the timeout.
func Eventually(t testing.TB, timeout time.Duration, what string, try func() error) {
	t.Helper()
	start := time.Now()
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Since(start) > timeout {
			t.Fatalf("%s: not within %v: %v", what, timeout, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
