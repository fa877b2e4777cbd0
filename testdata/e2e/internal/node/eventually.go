package node

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// SlownessVariable says how many times slower the machine is than those that the tests' times are for.
const SlownessVariable = "E2E_SLOWNESS"

// Slowly returns how long something takes on this machine that takes d elsewhere.
func Slowly(d time.Duration) time.Duration {
	if factor, err := strconv.Atoi(os.Getenv(SlownessVariable)); err == nil {
		return d * time.Duration(factor)
	}
	return d
}

// Eventually calls try until it returns nil, and fails the test with its last
// error if that takes longer than the timeout, for an ordinary machine.
func Eventually(t testing.TB, timeout time.Duration, what string, try func() error) {
	t.Helper()
	start, timeout := time.Now(), Slowly(timeout)
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
