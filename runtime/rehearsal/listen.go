package rehearsal

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Line is what the plugin logged.
type Line struct {
	Level slog.Level
	Text  string
}

// heard is a slog.Handler that tells the plugin's own lines, what its call cost and
// what the proxy has to say of it apart.
type heard struct {
	mu      sync.Mutex
	lines   []Line
	remarks []string
	refused []string
	fuel    int64
	calls   int64
	took    time.Duration
	open    bool // lines are kept
}

func (h *heard) Enabled(context.Context, slog.Level) bool { return true }
func (h *heard) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *heard) WithGroup(string) slog.Handler            { return h }

// Handle implements slog.Handler.
func (h *heard) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case r.Message == "plugin log":
		h.lines = append(h.lines, Line{r.Level, text(r, "text")})
	case !h.open:
	case r.Message == "plugin called":
		r.Attrs(h.cost)
	case r.Message == "host function refused":
		h.refused = append(h.refused, strings.TrimSpace(text(r, "function")+" "+text(r, "target"))+": "+text(r, "err"))
	case r.Level >= slog.LevelWarn && r.Message != "plugin failed and was ignored": // the outcome says so
		h.remarks = append(h.remarks, remark(r))
	}
	return nil
}

func (h *heard) cost(a slog.Attr) bool {
	switch a.Key {
	case "fuel":
		h.fuel += a.Value.Int64()
	case "host_calls":
		h.calls += a.Value.Int64()
	case "took":
		h.took += a.Value.Duration()
	}
	return true
}

// begin forgets what was said before the event.
func (h *heard) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = true
}

func text(r slog.Record, key string) (v string) {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == key {
			v = a.Value.String()
		}
		return a.Key != key
	})
	return v
}

// remark writes a record for people.
func remark(r slog.Record) string {
	words := []string{r.Message}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != "" && a.Key != "hook" && a.Key != "plugin" && a.Key != "stack" {
			words = append(words, a.Key+"="+a.Value.String())
		}
		return true
	})
	return strings.Join(words, " ")
}
