package docker

import (
	"bufio"
	"bytes"
	"net"
	"net/http"

	"google.golang.org/grpc/status"
)

// writer is the way to the caller. It remembers the answer's code.
type writer struct {
	http.ResponseWriter
	code int
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(code int) {
	if code >= http.StatusOK {
		w.code = code
	}
	w.ResponseWriter.WriteHeader(code)
}

// Hijack implements http.Hijacker. What the caller has sent already is read first.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return conn, buffered, err
	}
	w.code = http.StatusSwitchingProtocols
	return &upgraded{conn, buffered.Reader}, buffered, nil
}

// upgraded is a connection that was taken over from HTTP.
type upgraded struct {
	net.Conn
	from *bufio.Reader
}

// Read implements io.Reader. What is buffered comes first. The buffer is not filled again: at its end
// net/http would end the request.
func (u *upgraded) Read(p []byte) (int, error) {
	if n := u.from.Buffered(); n > 0 {
		return u.from.Read(p[:min(len(p), n)])
	}
	return u.Conn.Read(p)
}

// CloseWrite tells the caller that no more comes, while its input is still read.
func (u *upgraded) CloseWrite() error {
	if half, ok := u.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return u.Conn.Close()
}

// recorder keeps the answer to a request that plugins hook, until their hooks have ended.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
	err    error // there is no answer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(code int) {
	if code >= http.StatusOK {
		r.code = code
	}
}

// Flush implements http.Flusher, and does nothing.
func (r *recorder) Flush() {}

// refuseError answers with an error that is not Docker's.
func refuseError(w http.ResponseWriter, err error) {
	s, answer := status.Convert(err), http.StatusInternalServerError
	for _, row := range answerCodes {
		if row.of == s.Code() {
			answer = row.answer
		}
	}
	refuse(w, answer, s.Message())
}
