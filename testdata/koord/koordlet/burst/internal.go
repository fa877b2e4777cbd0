//go:build ignore

// build.sh puts this file into the copy of koordlet's package cpuburst.

package cpuburst

import (
	"time"

	"github.com/koordinator-sh/koordinator/pkg/koordlet/qosmanager/framework"
)

// Init begins what Run begins, but for the clock.
func Init(s framework.QOSStrategy, stop <-chan struct{}) { s.(*cpuBurst).init(stop) }

// Step is one round of the strategy, a second after the one before. koordlet gives a limiter a random number of tokens
// at first, below half of its capacity. Here each begins with a quarter.
func Step(s framework.QOSStrategy) {
	b := s.(*cpuBurst)
	known := map[string]bool{}
	for id, l := range b.containerLimiter {
		known[id] = true
		l.lastUpdateTime = time.Now().Add(-time.Second)
	}
	b.start()
	for id, l := range b.containerLimiter {
		if !known[id] {
			l.currentToken = l.bucketCapacity / 4
		}
	}
}
