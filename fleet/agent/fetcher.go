package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Times between tries to fetch a revision.
const (
	firstRetry   = time.Second
	lastRetry    = 5 * time.Minute
	refusedRetry = 30 * time.Minute // the node's proxy may have been upgraded, or its settings changed
	fetchTime    = 5 * time.Minute  // of one try
)

// fetcher fetches revisions side by side with what else the agent does, and tries again until there is an answer, and
// now and then after a refusal.
type fetcher struct {
	has     func(revision string) bool // on disk, and nothing has to be verified
	fetch   func(ctx context.Context, revision string) error
	changed chan<- struct{} // gets an element, if there is room, when a fetch has ended
	failed  func()          // counts a try that failed

	mu    sync.Mutex
	known map[string]*fetching
}

// fetching is what is known of a revision.
type fetching struct {
	cancel context.CancelFunc
	urgent chan struct{} // closed when it is not to wait any longer
	soon   bool          // urgent is closed
	done   bool          // there is an answer: err, which is errRefused or errNotSelected, or nil
	err    error
}

// want has a revision fetched after a random time below jitter, at once if that is 0, and says how far that is.
func (f *fetcher) want(ctx context.Context, revision string, jitter time.Duration) (done bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, there := f.known[revision]
	if !there && f.has(revision) { // an agent that starts anew knows at once what it has
		one, there = &fetching{cancel: func() {}, urgent: make(chan struct{}), done: true}, true
		f.known[revision] = one
	}
	if !there {
		ctx, cancel := context.WithCancel(ctx)
		one = &fetching{cancel: cancel, urgent: make(chan struct{})}
		f.known[revision] = one
		go f.run(ctx, revision, one, jitter)
	}
	if jitter == 0 && !one.soon {
		one.soon = true
		close(one.urgent)
	}
	return one.done, one.err
}

// keep forgets all revisions but these, also how they were refused.
func (f *fetcher) keep(wanted map[string]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for revision, one := range f.known {
		if !wanted[revision] {
			one.cancel()
			delete(f.known, revision)
		}
	}
}

// forget has a revision fetched again when it is wanted.
func (f *fetcher) forget(revision string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one := f.known[revision]; one != nil {
		one.cancel()
		delete(f.known, revision)
	}
}

// unfetched is how many revisions could not be fetched at the last try, and are tried again.
func (f *fetcher) unfetched() (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.known {
		if !one.done && one.err != nil {
			n++
		}
	}
	return n
}

func (f *fetcher) run(ctx context.Context, revision string, one *fetching, jitter time.Duration) {
	defer one.cancel()
	var wait time.Duration
	if jitter > 0 {
		wait = rand.N(jitter)
	}
	for retry := firstRetry; ; {
		select {
		case <-ctx.Done():
			return
		case <-one.urgent:
			select { // a try that has failed waits for its next one all the same
			case <-ctx.Done():
				return
			case <-time.After(min(wait, retry)):
			}
		case <-time.After(wait):
		}
		try, cancel := context.WithTimeout(ctx, fetchTime)
		err := f.fetch(try, revision)
		cancel()
		if err != nil && !errors.Is(err, errNotSelected) && ctx.Err() == nil {
			f.failed()
		}
		if f.answer(one, err) {
			return
		}
		if one.done { // it is refused
			retry = refusedRetry
		}
		wait = retry + rand.N(retry)
		retry = max(retry, min(2*retry, lastRetry))
	}
}

// answer keeps what has come of a try, and reports whether it was the last one.
func (f *fetcher) answer(one *fetching, err error) (last bool) {
	f.mu.Lock()
	refused, last := errors.Is(err, errRefused), err == nil || errors.Is(err, errNotSelected)
	if !one.done || refused || last { // else it was refused before, and this try says nothing new
		one.done, one.err = refused || last, err
	}
	f.mu.Unlock()
	select {
	case f.changed <- struct{}{}:
	default:
	}
	return last
}
