package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// wholeID is how long the IDs of containers are.
const wholeID = 64

// A Client asks Docker on the proxy's own behalf. It is safe for concurrent use.
type Client struct {
	endpoint  string // as it was given
	transport *http.Transport
	all       bool          // containers get hooks that Kubernetes did not make
	reading   chan struct{} // holds one for each answer that is read and decoded

	listed atomic.Pointer[info] // of the node, asked since pods were last listed; nil: not yet
}

// NewClient returns a Client of the daemon on a unix socket, "unix://" and an absolute path or the
// path alone. all says that containers are pods and containers, too, which Kubernetes did not make.
func NewClient(endpoint string, all bool) *Client {
	c := &Client{endpoint: endpoint, all: all, reading: make(chan struct{}, maxReading)}
	c.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
		// No request meets a connection that a restarted daemon has lost. The header "Connection: close", which
		// DisableKeepAlives adds, would have dockerd answer some errors and close without reading the body, so
		// that sending it fails and the answer is lost.
		MaxIdleConnsPerHost: -1,
		DisableCompression:  true, // no header is added

		MaxResponseHeaderBytes: maxHead,
	}
	return c
}

// dial connects to Docker.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", strings.TrimPrefix(c.endpoint, "unix://"))
}

// Answers returns why no server of HTTP answers on a socket. dockerd and the proxy answer the
// question themselves.
func Answers(ctx context.Context, endpoint string) error {
	c := NewClient(endpoint, false)
	req, err := http.NewRequestWithContext(ctx, http.MethodOptions, "http://docker", nil)
	if err != nil {
		return err
	}
	req.URL.Path = "*"
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("waiting for %s to answer: %w", endpoint, err)
	}
	return res.Body.Close()
}

// get asks for JSON.
func (c *Client) get(ctx context.Context, path string, query url.Values, into any) error {
	return c.do(ctx, http.MethodGet, path, query, nil, into)
}

// do sends a request of the proxy's own, with a body unless it is nil, and decodes the answer. An
// error is one of CRI's: NotFound if there is no such object, Unavailable without Docker.
func (c *Client) do(ctx context.Context, method, path string, query url.Values, body, into any) error {
	return c.ask(ctx, method, path, query, body, func(answer io.Reader) error {
		text, err := readUpTo(answer, maxAnswer)
		switch {
		case errors.Is(err, errTooLarge): // which is the object's, not Docker's
			return err
		case err != nil:
			return c.unreachable(ctx, err)
		}
		return decode(text, into)
	})
}

// ask does the same, and has read decode an answer that is no error.
func (c *Client) ask(ctx context.Context, method, path string, query url.Values, body any, read func(io.Reader) error) error {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return err
		}
	}
	u := url.URL{Scheme: "http", Host: "docker", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(text))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer res.Body.Close()
	select {
	case c.reading <- struct{}{}:
		defer func() { <-c.reading }()
	case <-ctx.Done():
		return c.unreachable(ctx, ctx.Err())
	}
	if res.StatusCode >= http.StatusBadRequest {
		answer, err := readUpTo(res.Body, maxAnswer)
		if err != nil {
			return c.unreachable(ctx, err)
		}
		return &answerError{res.StatusCode, messageOf(answer)}
	}
	if err := read(res.Body); err != nil {
		return fmt.Errorf("reading Docker's answer to %s %s: %w", method, path, err)
	}
	return nil
}

// unreachable is the error of a request that Docker has not answered.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Errorf(codes.Unavailable, "Docker at %s does not answer: %v", c.endpoint, err)
}

// inspect returns a container by its ID, a prefix of it, or its name.
func (c *Client) inspect(ctx context.Context, id string) (*inspection, kind, error) {
	found := new(inspection)
	if err := c.get(ctx, "/containers/"+id+"/json", nil, found); err != nil {
		return nil, notOurs, err
	}
	found.Config.HostConfig = found.HostConfig
	return found, kindOf(found.Config.Labels, c.all), nil
}

// list returns all containers that are pods, or in pods, by their kinds: with a whole ID that one
// alone. By a name Docker would find none.
func (c *Client) list(ctx context.Context, id string) (all []summary, err error) {
	query := url.Values{"all": {"1"}}
	filters := map[string]map[string]bool{}
	if !c.all {
		filters["label"] = map[string]bool{typeLabel: true}
	}
	if len(id) == wholeID {
		filters["id"] = map[string]bool{id: true}
	}
	text, err := json.Marshal(filters)
	if err != nil {
		return nil, err
	}
	query.Set("filters", string(text))
	err = c.ask(ctx, http.MethodGet, "/containers/json", query, nil, func(answer io.Reader) error {
		all, err = decodeList(answer)
		return err
	})
	return all, err
}
