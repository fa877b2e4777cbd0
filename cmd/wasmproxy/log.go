package main

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// newObserver returns a sink that writes events to a log: for people on a terminal and for
// machines elsewhere, unless the operator chose. Its first warn of environment variables that
// look like settings and are none.
func newObserver(cmd *cobra.Command, c *config.Config) observe.Observer {
	w := cmd.ErrOrStderr()
	var handler slog.Handler = slog.NewJSONHandler(jsonLines{w}, &slog.HandlerOptions{Level: c.Level()})
	if terminal := isTerminal(w); c.LogFormat == "text" || c.LogFormat == "auto" && terminal {
		handler = tint.NewTextHandler(w, &tint.Options{Level: c.Level(), TimeFormat: time.TimeOnly, NoColor: !terminal})
	}
	observer := slogsink.New(slog.New(handler))
	for _, name := range config.UnknownVariables() {
		observer.Observe(cmd.Context(), &observe.VariableIgnored{Variable: name})
	}
	return observer
}

// jsonLines writes JSON that a terminal shows as it is.
type jsonLines struct{ to io.Writer }

func (w jsonLines) Write(line []byte) (int, error) {
	if _, err := w.to.Write(plugin.PrintableJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
