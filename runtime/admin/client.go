package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"github.com/wasmproxy/wasmproxy/runtime/explain"
)

// maxAnswer bounds an answer, in bytes: a pod with 100 containers and 30 values each has some
// 2 MiB.
const maxAnswer = 64 << 20

// Client asks the proxy whose admin socket is at Socket, an absolute path.
type Client struct{ Socket string }

// Explain asks which values a pod or container has, named in the form explain.Form. The errors
// are for people. One of the name is an *explain.Error.
func (c Client) Explain(ctx context.Context, name string) (*explain.Report, error) {
	r := new(explain.Report)
	return r, c.get(ctx, "/explain?name="+url.QueryEscape(name), r)
}

func (c Client) get(ctx context.Context, resource string, into any) error {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) }}
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://admin"+resource, nil)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return c.unreachable(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", c.Socket, err)
	}
	if resp.StatusCode != http.StatusOK {
		return c.refused(resp.StatusCode, body)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", c.Socket, err)
	}
	return nil
}

func (c Client) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", c.Socket)
}

// unreachable says what to do if the proxy cannot be reached.
func (c Client) unreachable(err error) error {
	const which = "; if it has another admin-socket, name that with --admin-socket"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no admin socket %s: start the proxy (wasmproxy serve)%s", c.Socket, which)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no proxy listens on the admin socket %s: start the proxy (wasmproxy serve)%s", c.Socket, which)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("no permission to open the admin socket %s: run the command as the proxy's user, which is usually root", c.Socket)
	}
	return fmt.Errorf("asking the proxy on the admin socket %s: %w", c.Socket, err)
}

// refused is the error that the proxy has answered with.
func (c Client) refused(status int, body []byte) error {
	var p problem
	if json.Unmarshal(body, &p) != nil || p.Error == "" {
		return fmt.Errorf("what listens on %s answers with status %d: check that it is the admin socket of a wasmproxy of this version", c.Socket, status)
	}
	kinds := map[int]error{http.StatusBadRequest: explain.ErrInvalid, http.StatusNotFound: explain.ErrNotFound, http.StatusConflict: explain.ErrAmbiguous}
	if kind := kinds[status]; kind != nil {
		return &explain.Error{Kind: kind, Text: p.Error}
	}
	return errors.New(p.Error)
}
