package simulate

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

func (l Line) String() string { return strings.ToLower(l.Level.String()) + ": " + l.Text }

// logCapture is a slog.Handler that tells the plugin's own lines, what its call cost and
// what the proxy has to say of it apart.
type logCapture struct {
	mu      sync.Mutex
	lines   []Line
	remarks []string
	refused []string
	fuel    int64
	calls   int64
	took    time.Duration
	open    bool // lines are kept
}

func (c *logCapture) Enabled(context.Context, slog.Level) bool { return true }
func (c *logCapture) WithAttrs([]slog.Attr) slog.Handler       { return c }
func (c *logCapture) WithGroup(string) slog.Handler            { return c }

// Handle implements slog.Handler.
func (c *logCapture) Handle(_ context.Context, r slog.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case r.Message == "plugin log":
		c.lines = append(c.lines, Line{r.Level, text(r, "text")})
	case !c.open:
	case r.Message == "plugin called":
		r.Attrs(c.cost)
	case r.Message == "host function refused":
		c.refused = append(c.refused, strings.TrimSpace(text(r, "function")+" "+text(r, "target"))+": "+text(r, "err"))
	case r.Level >= slog.LevelWarn && r.Message != "plugin failed and was ignored": // the outcome says so
		c.remarks = append(c.remarks, remark(r))
	}
	return nil
}

func (c *logCapture) cost(a slog.Attr) bool {
	switch a.Key {
	case "fuel":
		c.fuel += a.Value.Int64()
	case "host_calls":
		c.calls += a.Value.Int64()
	case "took":
		c.took += a.Value.Duration()
	}
	return true
}

// begin forgets what was said before the event.
func (c *logCapture) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = true
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
