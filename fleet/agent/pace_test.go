package agent

import (
	"testing"
	"time"
)

// TestPace has many nodes learn the same at once: their writes are spread, and none writes twice in the time.
func TestPace(t *testing.T) {
	const every = 10 * time.Second
	start := time.Now()
	seconds := map[int]int{}
	for range 1000 {
		p := NewPace(every)
		for at := 0; ; at++ {
			if at > 10 {
				t.Fatal("a node waits longer")
			}
			if now := start.Add(time.Duration(at) * time.Second); !now.Before(p.Due(now)) {
				p.Reported(now)
				if seconds[at]++; p.Due(now).Before(now.Add(every)) {
					t.Fatal("a node writes again too early")
				}
				break
			}
		}
	}
	for at := 1; at <= 10; at++ {
		if n := seconds[at]; n < 40 || n > 200 { // 100 on average
			t.Errorf("%d of 1,000 nodes write in second %d", n, at)
		}
	}
}
