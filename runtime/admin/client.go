package admin

import (
	"bytes"
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
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// maxAnswer bounds an answer, in bytes: a pod with 100 containers and 30 values each has some
// 2 MiB.
const maxAnswer = 64 << 20

// Client asks the proxy whose admin socket is at Socket, an absolute path. With StatusOnly that is the
// status socket, which answers Status and Plugins alone.
type Client struct {
	Socket     string
	StatusOnly bool
}

// Ask asks the proxy on its admin socket, or on its status socket if that one cannot be reached. A path that is empty is of
// no socket. The error is ErrNoProxy if no proxy can be reached.
func Ask[T any](ctx context.Context, adminSocket, statusSocket string, ask func(Client, context.Context) (T, error)) (answer T, err error) {
	err = unreached{ErrNoProxy, "admin-socket and status-socket are empty, so that no proxy can be asked"}
	if adminSocket != "" {
		answer, err = ask(Client{Socket: adminSocket}, ctx)
	}
	if statusSocket == "" || !errors.Is(err, ErrNoProxy) && !errors.Is(err, fs.ErrPermission) {
		return answer, err
	}
	other, second := ask(Client{Socket: statusSocket, StatusOnly: true}, ctx)
	switch {
	case second == nil, adminSocket == "":
		return other, second
	case errors.Is(second, ErrNoProxy):
		return answer, fmt.Errorf("%w; nor does a proxy answer on the status socket %s", err, statusSocket)
	}
	return answer, fmt.Errorf("%w; %w", err, second)
}

// setting is the one that has the path of the socket, and what the socket is called.
func (c Client) setting() (key, name string) {
	if c.StatusOnly {
		return "status-socket", "status socket"
	}
	return "admin-socket", "admin socket"
}

// Explain asks which values a pod or container has, named in the form explain.Form. The errors
// are for people. One of the name is an *explain.Error.
func (c Client) Explain(ctx context.Context, name string) (*explain.Report, error) {
	return ask[*explain.Report](ctx, c, http.MethodGet, "/explain?name="+url.QueryEscape(name), nil)
}

// Status asks for the state of the proxy.
func (c Client) Status(ctx context.Context) (*status.Status, error) {
	return ask[*status.Status](ctx, c, http.MethodGet, "/status", nil)
}

// Plugins asks for the state of the plugins.
func (c Client) Plugins(ctx context.Context) (status.Plugins, error) {
	return ask[status.Plugins](ctx, c, http.MethodGet, "/plugins", nil)
}

// Bypass asks whether plugins are bypassed.
func (c Client) Bypass(ctx context.Context) (status.Bypass, error) {
	return ask[status.Bypass](ctx, c, http.MethodGet, "/bypass", nil)
}

// Retry has the version of a plugin loaded once more that failed its probation.
func (c Client) Retry(ctx context.Context, plugin string) error {
	_, err := ask[struct{}](ctx, c, http.MethodPost, "/plugins/"+url.PathEscape(plugin)+"/retry", nil)
	return err
}

// Shadow asks what came of the calls of a plugin's shadow.
func (c Client) Shadow(ctx context.Context, id string) (plugin.ShadowReport, error) {
	return ask[plugin.ShadowReport](ctx, c, http.MethodGet, "/plugins/"+url.PathEscape(id)+"/shadow", nil)
}

// Record has the calls of a plugin recorded. The caller reads the lines and closes them, which ends the recording, as the
// end of ctx does.
func (c Client) Record(ctx context.Context, id string, o recording.Options) (io.ReadCloser, error) {
	return c.open(ctx, http.MethodPost, "/plugins/"+url.PathEscape(id)+"/recording", o)
}

// ErrNoProxy says that no proxy listens on the socket.
var ErrNoProxy = errors.New("no proxy runs")

// unreached is an error of a kind that says what to do.
type unreached struct {
	kind error // ErrNoProxy, or fs.ErrPermission
	text string
}

func (e unreached) Error() string { return e.text }
func (e unreached) Unwrap() error { return e.kind }

// ask has the answer, which is JSON, decoded.
func ask[T any](ctx context.Context, c Client, method, resource string, body any) (is T, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := c.open(ctx, method, resource, body)
	if err != nil {
		return is, err
	}
	defer answer.Close()
	if err := json.NewDecoder(io.LimitReader(answer, maxAnswer)).Decode(&is); err != nil {
		return is, fmt.Errorf("reading the answer of %s: %w", c.Socket, err)
	}
	return is, nil
}

// open returns an answer, which the caller closes, and its connection with it. A body to send becomes JSON. An answer that
// is an error is the error.
func (c Client) open(ctx context.Context, method, resource string, body any) (io.ReadCloser, error) {
	var send bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&send).Encode(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://admin"+resource, &send)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", c.Socket)
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dial}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("reading the answer of %s: %w", c.Socket, err)
	}
	var p problem
	if json.Unmarshal(text, &p) != nil || p.Error == "" {
		_, name := c.setting()
		const other = "what listens on %s answers with status %d: check that it is the %s of a wasmproxy of this version"
		return nil, fmt.Errorf(other, c.Socket, resp.StatusCode, name)
	}
	if kind := kinds[resp.StatusCode]; kind != nil {
		return nil, &explain.Error{Kind: kind, Text: p.Error}
	}
	return nil, errors.New(p.Error)
}

// unreachable says what to do if the proxy cannot be reached.
func (c Client) unreachable(err error) error {
	key, name := c.setting()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return unreached{ErrNoProxy, fmt.Sprintf("there is no %s %s: start the proxy (systemctl start wasmproxy, or wasmproxy serve); if it has another %s, name that with --%s", name, c.Socket, key, key)}
	case errors.Is(err, syscall.ECONNREFUSED):
		return unreached{ErrNoProxy, fmt.Sprintf("no proxy listens on the %s %s: start the proxy (systemctl start wasmproxy, or wasmproxy serve); if it has another %s, name that with --%s", name, c.Socket, key, key)}
	case errors.Is(err, fs.ErrPermission):
		return unreached{fs.ErrPermission, fmt.Sprintf("no permission to open the %s %s: run the command as the proxy's user, which is usually root", name, c.Socket)}
	}
	return fmt.Errorf("asking the proxy on the %s %s: %w", name, c.Socket, err)
}
