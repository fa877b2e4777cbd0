package dockermode_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// TestAttachHeaders attaches to a process as clients do that send both headers of an upgrade, one, or none,
// and compares each byte with what the Engine answers without wasmproxy. Docker's client sends both.
func TestAttachHeaders(t *testing.T) {
	engine := startDocker(t)
	proxy := node.StartProxy(t, node.Noop)
	for _, headers := range []string{"Connection: Upgrade\r\nUpgrade: tcp\r\n", "Upgrade: tcp\r\n", ""} {
		for name, attach := range map[string]func(t *testing.T, e api, headers string) string{"attach": attachToNew, "exec": attachToExec} {
			t.Run(fmt.Sprintf("%s %q", name, headers), func(t *testing.T) {
				direct := attach(t, api(engine.Endpoint), headers)
				if !strings.HasPrefix(direct, "HTTP/1.1 ") || !strings.HasSuffix(direct, "hello\n") {
					t.Errorf("without wasmproxy the bytes are %q", direct)
				}
				if proxied := attach(t, api(engine.ProxyEndpoint), headers); proxied != direct {
					t.Errorf("with wasmproxy the bytes are %q, without it %q", proxied, direct)
				}
			})
		}
	}
	proxy.Stop(t)
}

// api is an endpoint of the Engine's API.
type api string

func (e api) dial(t *testing.T) *net.UnixConn {
	t.Helper()
	conn, err := net.Dial("unix", strings.TrimPrefix(string(e), "unix://"))
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(scriptTimeout))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.UnixConn)
}

// post sends a body, and returns the answer.
func (e api) post(t *testing.T, path, body string) (code int, answer string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return e.dial(t), nil }}}
	res, err := client.Post("http://docker"+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// make makes an object, and returns its ID.
func (e api) make(t *testing.T, path, body string) string {
	t.Helper()
	code, answer := e.post(t, path, body)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(answer), &made); code != http.StatusCreated || err != nil {
		t.Fatalf("POST %s answers %d %s", path, code, answer)
	}
	return made.ID
}

// runCat makes a container that repeats its input, which is removed at its end.
func (e api) runCat(t *testing.T, command string) string {
	t.Helper()
	return e.make(t, "/v1.41/containers/create", `{"Image":"busybox","Cmd":[`+command+`],"OpenStdin":true,"StdinOnce":true,"AttachStdin":true,"HostConfig":{"AutoRemove":true,"NetworkMode":"none"}}`)
}

// attachToNew attaches to a container before it is started, and returns all bytes that come.
func attachToNew(t *testing.T, e api, headers string) string {
	id := e.runCat(t, `"cat"`)
	return converse(t, e, "/v1.41/containers/"+id+"/attach?stream=1&stdin=1&stdout=1&stderr=1", headers, "", func() {
		if code, answer := e.post(t, "/v1.41/containers/"+id+"/start", ""); code != http.StatusNoContent {
			t.Fatalf("the start answers %d %s", code, answer)
		}
	})
}

// attachToExec is the same of a command in a container that runs.
func attachToExec(t *testing.T, e api, headers string) string {
	id := e.runCat(t, `"sleep","1000"`)
	if code, answer := e.post(t, "/v1.41/containers/"+id+"/start", ""); code != http.StatusNoContent {
		t.Fatalf("the start answers %d %s", code, answer)
	}
	defer e.post(t, "/v1.41/containers/"+id+"/kill", "")
	exec := e.make(t, "/v1.41/containers/"+id+"/exec", `{"Cmd":["cat"],"AttachStdin":true,"AttachStdout":true,"AttachStderr":true}`)
	return converse(t, e, "/v1.41/exec/"+exec+"/start", headers, `{"Detach":false,"Tty":false}`, func() {})
}

// converse sends a request and, after the head of its answer, a line of input. It returns all bytes that come.
func converse(t *testing.T, e api, path, headers, body string, answered func()) string {
	t.Helper()
	conn := e.dial(t)
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", path, len(body), headers, body)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for one := make([]byte, 1); !bytes.HasSuffix(got.Bytes(), []byte("\r\n\r\n")); got.Write(one) {
		if _, err := io.ReadFull(conn, one); err != nil {
			t.Fatalf("after %q: %v", got.Bytes(), err)
		}
	}
	answered()
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(&got, conn); err != nil {
		t.Fatalf("after %q: %v", got.Bytes(), err)
	}
	return got.String()
}
