package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"golang.org/x/term"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
)

// newObserver writes events to a log: for people on a terminal and for machines elsewhere,
// unless the operator chose.
func newObserver(w io.Writer, c *config.Config) observe.Observer {
	text := c.LogFormat == "text" || c.LogFormat == "auto" && isTerminal(w)
	if text {
		return slogsink.New(slog.New(tint.NewTextHandler(w, &tint.Options{Level: c.Level(), TimeFormat: time.TimeOnly, NoColor: !isTerminal(w)})))
	}
	return slogsink.New(slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: c.Level()})))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
