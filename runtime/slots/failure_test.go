package slots

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// An owner that hangs is a reason for which the proxy is not ready, and one that has ended is none.
func TestMissingOfAnOwnerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := unconnected(t)
		s.events, s.ended = make(chan func(context.Context)), make(chan struct{})
		go func() { <-s.events }() // it takes one question, and answers none
		missing := func(why bool) []string {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return s.Missing(ctx, why, true)
		}
		for range 2 {
			if got := missing(true); !slices.Equal(got, []string{"the owner of the plugins does not answer: context deadline exceeded"}) {
				t.Errorf("got %q", got)
			}
		}
		if got := missing(false); !slices.Equal(got, []string{"the owner of the plugins does not answer"}) {
			t.Errorf("without why: got %q", got)
		}
		close(s.ended)
		if got := missing(true); len(got) > 0 {
			t.Errorf("at the end: got %q", got)
		}
	})
}
