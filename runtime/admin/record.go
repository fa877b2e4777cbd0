package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/recording"
)

// record streams a recording until it ends or the client goes away, which also ends it.
func (s *Sources) record(w http.ResponseWriter, r *http.Request) {
	var o recording.Options
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxHeader))
	d.DisallowUnknownFields()
	err := d.Decode(&o)
	if err == nil {
		err = o.Check()
	}
	if err != nil {
		answer(w, http.StatusBadRequest, problem{"the body is no request for a recording: " + err.Error()})
		return
	}
	lines := &lines{w: w, control: http.NewResponseController(w)}
	_ = lines.control.SetReadDeadline(time.Time{}) // both deadlines are those of short answers
	_ = lines.control.SetWriteDeadline(time.Now().Add(o.For + answerTime))
	if err := s.Record(r.Context(), r.PathValue("id"), o, lines); err != nil && !lines.begun {
		answer(w, http.StatusServiceUnavailable, problem{err.Error()})
	}
}

// lines hands each line on at once.
type lines struct {
	w       http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

// Write implements io.Writer.
func (l *lines) Write(line []byte) (int, error) {
	if !l.begun {
		l.w.Header().Set("Content-Type", "application/jsonl")
		l.begun = true
	}
	n, err := l.w.Write(line)
	if err == nil {
		err = l.control.Flush()
	}
	return n, err
}
