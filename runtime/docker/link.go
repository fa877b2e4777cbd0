package docker

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"google.golang.org/grpc/connectivity"
)

// How soon a lost connection to Docker is made again.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// A Link keeps one request for events open, and so knows whether Docker is there. It has the
// states of a gRPC connection, and is safe for concurrent use.
type Link struct {
	client *Client
	each   func(Event)

	mu      sync.Mutex
	state   connectivity.State
	changed chan struct{} // closed at the next change
}

// An Event is something that has happened to a container.
type Event struct {
	ID     string
	Action Action
	Pod    bool // the container is a pod's sandbox
	Alone  bool // the container is its pod, since Kubernetes did not make it
}

// Action is the kind of an event, as Docker names it.
type Action string

// The actions that a Link tells of.
const (
	Started   Action = "start"
	Died      Action = "die"
	Destroyed Action = "destroy"
)

// NewLink returns a Link that is yet to Run. each is called with each event of a container that
// gets hooks, one after another; it must not wait.
func NewLink(c *Client, each func(Event)) *Link {
	return &Link{client: c, each: each, state: connectivity.Idle, changed: make(chan struct{})}
}

// Target returns the endpoint.
func (l *Link) Target() string { return l.client.endpoint }

// Connect does nothing, since Run keeps the connection.
func (l *Link) Connect() {}

// GetState returns the state of the moment.
func (l *Link) GetState() connectivity.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// WaitForStateChange returns true when the state is another than from, or false when ctx is done.
func (l *Link) WaitForStateChange(ctx context.Context, from connectivity.State) bool {
	l.mu.Lock()
	state, changed := l.state, l.changed
	l.mu.Unlock()
	if state != from {
		return true
	}
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *Link) set(state connectivity.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != state {
		l.state = state
		close(l.changed)
		l.changed = make(chan struct{})
	}
}

// Run keeps the connection until ctx is done.
func (l *Link) Run(ctx context.Context) {
	retry := firstRetry
	for ctx.Err() == nil {
		if l.follow(ctx) {
			retry = firstRetry
		}
		l.set(connectivity.TransientFailure)
		select {
		case <-time.After(retry):
		case <-ctx.Done():
		}
		retry = min(2*retry, lastRetry)
	}
}

// follow reads events until the connection is lost. It reports whether there was one.
func (l *Link) follow(ctx context.Context) bool {
	query := url.Values{"filters": {`{"type":{"container":true},"event":{"start":true,"die":true,"destroy":true}}`}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/events?"+query.Encode(), nil)
	if err != nil {
		return false
	}
	res, err := l.client.transport.RoundTrip(req)
	if err != nil {
		return false
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return false
	}
	l.set(connectivity.Ready)
	limited := &io.LimitedReader{R: res.Body}
	for dec := json.NewDecoder(limited); ; {
		limited.N = maxAnswer // a larger event is not known, so that the store has to be filled anew
		var e struct {
			Action Action
			Actor  struct {
				ID         string
				Attributes map[string]string // with the labels
			}
		}
		if dec.Decode(&e) != nil {
			return true
		}
		if k := kindOf(e.Actor.Attributes, l.client.all); k != notOurs && len(e.Actor.ID) <= wholeID {
			l.each(Event{ID: e.Actor.ID, Action: e.Action, Pod: k == ofSandbox, Alone: k == standalone})
		}
	}
}
