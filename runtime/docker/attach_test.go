package docker_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// takeOver answers as dockerd does: it takes the connection over, whether the request asks for an upgrade
// or not. The answer has a header that nobody else would write.
func takeOver(w http.ResponseWriter, r *http.Request) (net.Conn, *bufio.ReadWriter) {
	_, _ = io.ReadAll(r.Body)
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_, _ = io.WriteString(conn, answerTo(r.Header["Upgrade"] != nil))
	return conn, buffered
}

func answerTo(upgrade bool) string {
	if upgrade {
		return "HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nX-Z: 1\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
	}
	return "HTTP/1.1 200 OK\r\nX-Z: 1\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n"
}

// echo takes the connection over, and echoes the input only when that has ended.
func echo(w http.ResponseWriter, r *http.Request) {
	conn, buffered := takeOver(w, r)
	defer conn.Close()
	input, _ := io.ReadAll(buffered)
	fmt.Fprintf(conn, "%d bytes: %s", len(input), input)
}

// streams are requests whose connection dockerd takes over.
var streams = map[string]string{
	"attach": "POST /v1.41/containers/x/attach?stdin=1&stream=1 HTTP/1.1\r\nHost: docker\r\nContent-Type: text/plain\r\n",
	"exec":   "POST /exec/x/start HTTP/1.1\r\nHost: docker\r\nContent-Type: application/json\r\nContent-Length: 13\r\n",
}

// TestAttach: with both headers of an upgrade, with one and with none the answer is dockerd's to the byte,
// input that follows the request at once is not lost, also if the input has then ended, and the input's end
// reaches Docker while output is still to come.
func TestAttach(t *testing.T) {
	n := newNode(t, false)
	n.engine.answers(echo)
	for name, request := range streams {
		for _, headers := range []string{"Connection: Upgrade\r\nUpgrade: tcp\r\n", "Upgrade: tcp\r\n", ""} {
			for _, early := range []string{"", "early ", "all"} {
				t.Run(fmt.Sprintf("%s %q %s", name, headers, early), func(t *testing.T) {
					conn := n.dial()
					body := ""
					if name == "exec" {
						body = `{"Tty":false}`
					}
					io.WriteString(conn, request+headers+"\r\n"+body+early)
					want, late := answerTo(strings.Contains(headers, "tcp")), "late"
					if early == "all" {
						late = ""
						conn.CloseWrite()
					}
					head := make([]byte, len(want))
					if _, err := io.ReadFull(conn, head); err != nil || string(head) != want {
						t.Fatalf("the answer is %q, %v", head, err)
					}
					io.WriteString(conn, late)
					conn.CloseWrite()
					output, err := io.ReadAll(conn)
					if want := fmt.Sprintf("%d bytes: %s", len(early+late), early+late); err != nil || string(output) != want {
						t.Errorf("the output is %q, %v, want %q", output, err, want)
					}
				})
			}
		}
	}
}

// TestAttachRefused: an answer of dockerd's HTTP server takes nothing over. The next request on the
// connection has its hooks.
func TestAttachRefused(t *testing.T) {
	asked := make(chan bool, 1)
	n := newNode(t, true, on(abi.PreCreateContainer, func(plugin.Event, *plugin.Adjustment) error { asked <- true; return nil }))
	conn := n.dial()
	answers := bufio.NewReader(conn)
	send := func(request string) (int, string) {
		io.WriteString(conn, request)
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	n.engine.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"message":"No such container"}`)
	})
	for name, request := range streams {
		body := ""
		if name == "exec" {
			body = `{"Tty":false}`
		}
		if code, answer := send(request + "Upgrade: tcp\r\n\r\n" + body); code != 404 || answer != `{"message":"No such container"}` {
			t.Errorf("%s answers %d %s", name, code, answer)
		}
	}
	n.engine.answers(nil)
	if code, _ := send("POST /containers/create HTTP/1.1\r\nHost: docker\r\nContent-Length: 2\r\n\r\n{}"); code != 201 || len(asked) != 1 {
		t.Errorf("the creation answers %d, and the plugin was asked %d times", code, len(asked))
	}
}

// TestAttachEnds: a caller that sends more than the process reads gets all output and its end, no error.
func TestAttachEnds(t *testing.T) {
	n := newNode(t, false)
	n.engine.answers(func(w http.ResponseWriter, r *http.Request) {
		conn, buffered := takeOver(w, r)
		_, _ = buffered.ReadByte()
		io.WriteString(conn, "output")
		conn.Close() // with input that nobody has read
	})
	conn := n.dial()
	io.WriteString(conn, streams["attach"]+"\r\n"+strings.Repeat("input", 1000))
	output, err := io.ReadAll(conn)
	if want := answerTo(false) + "output"; err != nil || string(output) != want {
		t.Errorf("the caller got %q, %v, want %q", output, err, want)
	}
}

// TestGoneCaller: a request ends with its caller, whatever its headers, before and after the answer.
func TestGoneCaller(t *testing.T) {
	ended := make(chan struct{})
	defer close(ended)
	attachSilently := func(w http.ResponseWriter, r *http.Request) {
		conn, buffered := takeOver(w, r)
		defer conn.Close()
		_, _ = io.Copy(io.Discard, buffered)
		<-ended // though its input is at its end
	}
	const get = "GET /%s HTTP/1.1\r\nHost: docker\r\n"
	for name, test := range map[string]struct {
		request string
		answer  http.HandlerFunc
	}{
		"events":          {fmt.Sprintf(get, "events"), silent},
		"service logs":    {fmt.Sprintf(get, "services/x/logs"), silent},
		"events, upgrade": {fmt.Sprintf(get, "events") + "Connection: Upgrade\r\nUpgrade: tcp\r\n", silent},
		"stop, upgrade":   {"POST /containers/x/stop HTTP/1.1\r\nHost: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n", mute},
		"attach":          {streams["attach"], attachSilently},
		"attach, upgrade": {streams["attach"] + "Upgrade: tcp\r\n", attachSilently},
		"attach, mute":    {streams["attach"], mute},
	} {
		t.Run(name, func(t *testing.T) {
			n, began := newNode(t, false), make(chan bool, 1)
			n.engine.answers(func(w http.ResponseWriter, r *http.Request) { began <- true; test.answer(w, r) })
			conn := n.dial()
			io.WriteString(conn, test.request+"\r\n")
			eventually(t, "the request arrives", func() bool { return len(began) > 0 })
			if open := n.peers.Connections(); open != 1 {
				t.Errorf("%d connections are open, want 1", open)
			}
			conn.Close()
			eventually(t, "no connection is open", func() bool { return n.peers.Connections() == 0 })
		})
	}
}

// silent answers with a head, and nothing more.
func silent(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// mute does not answer.
func mute(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
