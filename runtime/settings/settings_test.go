package settings_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/wasmproxy/wasmproxy/runtime/config"
	"github.com/wasmproxy/wasmproxy/runtime/settings"
)

// host is a settings file, the data-dir that it names, and that of a start without it.
type host struct {
	t                       *testing.T
	file, written, standard string
}

func newHost(t *testing.T) *host {
	dir := t.TempDir()
	return &host{t, filepath.Join(dir, "wasmproxy.yaml"), filepath.Join(dir, "written"), filepath.Join(dir, "standard")}
}

func (h *host) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// put writes the settings file, which names its data-dir unless that is cut off.
func (h *host) put(rest string) {
	h.t.Helper()
	h.must(os.WriteFile(h.file, []byte(rest), 0o644))
}

func (h *host) whole() string { return "drain-timeout: 4s\ndata-dir: " + h.written + " # apart\n" }

func (h *host) source() *settings.Source {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Flags(flags)
	h.must(flags.Set(config.FileFlag, h.file))
	return settings.New(func() config.File { return config.ReadFile(flags) }, func(f config.File) (*config.Config, error) {
		c, err := config.LoadFrom(flags, f)
		if err == nil && c.DataDir == config.Default().DataDir {
			c.DataDir = h.standard
		}
		return c, err
	})
}

// serve keeps the settings of the file, as a proxy does that serves with them.
func (h *host) serve() {
	h.t.Helper()
	s := h.source()
	_, err := s.Load()
	h.must(errors.Join(err, s.Keep()))
}

// TestTheCopyIsFound where a damaged file still says that it is, and else where a start without the file looks, if that
// directory exists.
func TestTheCopyIsFound(t *testing.T) {
	for _, test := range []struct {
		name, damage string
		standard     bool // there is the directory of a start without the file
		found        bool
	}{
		{"its line is left", "data-dir: WRITTEN # apart\ndrain-timeout: [\n", false, true},
		{"its line is quoted", "drain-timeout: 4\ndata-dir: \"WRITTEN\"\n", false, true},
		{"its line is gone", "drain-timeout: 4\n", false, false},
		{"its line is gone, and there is another copy", "drain-timeout: 4\n", true, true},
		{"the file is empty", "", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHost(t)
			if test.standard {
				h.must(os.Mkdir(h.standard, 0o700))
			}
			h.put(h.whole())
			h.serve()
			h.put(strings.ReplaceAll(test.damage, "WRITTEN", h.written))
			s := h.source()
			_, wrong := s.Load()
			if wrong == nil {
				t.Fatal("the file is not damaged")
			}
			c, err := s.FallBack(wrong, "/")
			if !test.found {
				if !errors.Is(err, settings.ErrNone) {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil || c.DrainTimeout.String() != "4s" || c.DataDir != h.written {
				t.Fatalf("the settings are %+v, %v", c, err)
			}
			if state := s.State(); !state.LastGood || state.Err == nil || state.Changed {
				t.Errorf("the state is %+v", state)
			}
			h.must(s.Keep()) // which leaves the copy as it is
			h.put(h.whole())
			if state := s.State(); !state.LastGood || state.Err != nil || state.Changed {
				t.Errorf("with the file of before the state is %+v", state)
			}
		})
	}
}

// TestState says what of the file counts now: a comment changes nothing, a value waits for a restart, and a bad file says
// what is wrong in it.
func TestState(t *testing.T) {
	h := newHost(t)
	h.put(h.whole())
	s := h.source()
	_, err := s.Load()
	h.must(err)
	for _, test := range []struct {
		text, says string
		changed    bool
	}{
		{h.whole(), "", false},
		{"# more\n" + h.whole(), "", false},
		{h.whole() + "log-level: debug\n", "", true},
		{h.whole() + "log-level: loud\n", `log-level: "loud"`, false},
		{h.whole(), "", false},
	} {
		h.put(test.text)
		state := s.State()
		if state.Changed != test.changed || test.says == "" != (state.Err == nil) || !strings.Contains(state.Problem(), test.says) {
			t.Errorf("%q: the state is %+v", test.text, state)
		}
	}
	h.must(os.Remove(h.file))
	if state := s.State(); state.Err == nil || !strings.Contains(state.Problem(), "no such file") {
		t.Errorf("without the file the state is %+v", state)
	}
}

// TestNothingIsKept with an empty data-dir, and nothing of a file that is the last good one itself helps.
func TestNothingIsKept(t *testing.T) {
	h := newHost(t)
	h.must(os.Mkdir(h.standard, 0o700))
	h.put("data-dir: \"\"\n")
	h.serve()
	s := h.source()
	if _, err := s.FallBack(errors.New("a start failed"), "/"); !errors.Is(err, settings.ErrNone) {
		t.Errorf("an empty data-dir: %v", err)
	}
	h.put(h.whole())
	h.serve()
	if _, err := h.source().FallBack(errors.New("a start failed"), "/"); !errors.Is(err, settings.ErrNone) {
		t.Errorf("the same settings: %v", err)
	}
}

// TestTheNewestCopyCounts, wherever it is, and only once: it is the last that there is.
func TestTheNewestCopyCounts(t *testing.T) {
	h := newHost(t)
	h.must(os.Mkdir(h.standard, 0o700))
	h.put("drain-timeout: 3s\ndata-dir: " + h.written + "\n")
	h.serve()
	h.put("drain-timeout: 5s\n") // which is kept in the other directory alone
	h.serve()
	h.put("drain-timeout: [\ndata-dir: " + h.written + "\n")
	s := h.source()
	_, wrong := s.Load()
	c, err := s.FallBack(wrong, "/")
	if err != nil || c.DrainTimeout.String() != "5s" {
		t.Fatalf("the settings are %+v, %v", c, err)
	}
	if _, err := s.FallBack(errors.New("a start failed"), "/"); !errors.Is(err, settings.ErrNone) || s.Refused() != wrong {
		t.Errorf("another time: %v, and the file was refused for %v", err, s.Refused())
	}
}

// TestTheSameSettingsKeepTheirTime over another start.
func TestTheSameSettingsKeepTheirTime(t *testing.T) {
	h := newHost(t)
	h.put(h.whole())
	h.serve()
	first := h.source()
	_, err := first.Load()
	h.must(errors.Join(err, first.Keep()))
	second := h.source()
	_, err = second.Load()
	h.must(errors.Join(err, second.Keep()))
	if a, b := first.State().Since, second.State().Since; !a.Equal(b) {
		t.Errorf("the same settings are of %v and of %v", a, b)
	}
}
