package registry

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// settings is what a JSON file says, of whichever directory.
type settings struct {
	Description
	keys   []string // that have a value
	hooks  []string // that it names; nil if it names none
	sha256 string   // that the module must have; "" if it may have any
	engine string   // "" if none is named
	shadow *settings
}

// key reads one key's value into settings. A value of null is an absent key.
type key struct {
	name string
	read func(*settings, json.RawMessage) error
}

// hookserverKeys are Koordinator's, and this project's that mean something for a
// hook server.
var hookserverKeys = []key{
	{"remote-endpoint", text(aString, readEndpoint)},
	{"failure-policy", readPolicy},
	{"runtime-hooks", value("a list of hook names", func(s *settings) *[]string { return &s.hooks })},
	{"timeout", text(aTimeout, readTimeout(hookTimeout))},
	{"match", readMatch},
	{"order", value(`a string such as "15", which is compared as names of files are`, func(s *settings) *string { return &s.Order })}, // as a number 5 would come after 10
}

// moduleKeys are those that mean nothing for a hook server, which is a process of its own that
// nobody here can deny or limit.
var moduleKeys = []key{
	{"grant", readGrant},
	{"limits", readLimits},
	{"tick-timeout", text(aTimeout, readTimeout(func(s *settings) *time.Duration { return &s.TickTimeout }))},
	{"tick-period", text(`a duration such as "10s"`, readTickPeriod)},
	{"state", text(aString, oneOf(func(s *settings) *string { return &s.State }, abi.StateNone, abi.StateInstance))},
	{"config", func(s *settings, v json.RawMessage) error { s.Config = compact(v); return nil }},
	{"sha256", text(aString, readDigest)},
	{"engine", text(aString, oneOf(func(s *settings) *string { return &s.engine }, engineAuto, engineInterpreter))},
}

// pluginKeys are those of the plugin directory.
var pluginKeys = slices.Concat(hookserverKeys, moduleKeys, []key{
	{"wasm-module", text(aString, readModuleName)},
	{"enabled", readEnabled},
	{"dry-run", value("true or false", func(s *settings) *bool { return &s.DryRun })},
	{shadowKey, readShadow},
})

// matchKeys are those of match.
var matchKeys = []key{
	{"namespaces", globs(func(s *settings) *[]string { return &s.Match.Namespaces })},
	{"qos", globs(func(s *settings) *[]string { return &s.Match.QoS })},
	{"runtime-handlers", globs(func(s *settings) *[]string { return &s.Match.RuntimeHandlers })}, // as other keys of the file, and not as in a manifest
	{"containers", globs(func(s *settings) *[]string { return &s.Match.Containers })},
	{"labels", value("an object of keys and values", func(s *settings) *map[string]string { return &s.Match.Labels })},
	{"annotations", value("an object of keys and values", func(s *settings) *map[string]string { return &s.Match.Annotations })},
}

// What runs a module, as an operator names it.
const (
	engineAuto        = "auto"
	engineInterpreter = "interpreter"
)

// maxSocket is the longest path of a unix socket in bytes: sun_path without its NUL.
const maxSocket = len(syscall.RawSockaddrUnix{}.Path) - 1

const aString = "a string"

// value reads a value of the kind that want names.
func value[T any](want string, of func(*settings) *T) func(*settings, json.RawMessage) error {
	return func(s *settings, v json.RawMessage) (err error) {
		*of(s), err = decode[T](v, want)
		return err
	}
}

// text reads a text of the kind that want names. An empty one is an absent key.
func text(want string, read func(*settings, string) error) func(*settings, json.RawMessage) error {
	return func(s *settings, v json.RawMessage) error {
		text, err := decode[string](v, want)
		if err != nil || text == "" {
			return err
		}
		return read(s, text)
	}
}

// oneOf reads one of two texts.
func oneOf(of func(*settings) *string, a, b string) func(*settings, string) error {
	return func(s *settings, text string) error {
		if text != a && text != b {
			return fmt.Errorf("%.64q is neither %q nor %q", text, a, b)
		}
		*of(s) = text
		return nil
	}
}

// globs reads a list that has something.
func globs(of func(*settings) *[]string) func(*settings, json.RawMessage) error {
	return func(s *settings, v json.RawMessage) (err error) {
		if *of(s), err = decode[[]string](v, "a list of globs"); err == nil && len(*of(s)) == 0 {
			err = errors.New("is empty and would match nothing")
		}
		return err
	}
}

// readMatch refuses keys that are not known: who writes one wants fewer pods than would match without it.
func readMatch(s *settings, v json.RawMessage) error {
	file, err := decode[map[string]json.RawMessage](v, "an object")
	if err != nil {
		return err
	}
	of, err := readKnown(matchKeys, file)
	if err != nil {
		return err
	}
	s.Match = of.Match
	return plugin.CheckMatch(s.Match)
}

func readEndpoint(s *settings, text string) error {
	path := strings.TrimPrefix(text, "unix://")
	switch {
	case !filepath.IsAbs(path):
		return fmt.Errorf("%.64q is not the absolute path of a unix socket", text)
	case strings.ContainsRune(path, 0):
		return fmt.Errorf("%.64q holds a NUL", text)
	}
	if path = filepath.Clean(path); len(path) > maxSocket {
		return fmt.Errorf("%.128q is longer than the %d bytes that the path of a unix socket may have", text, maxSocket)
	}
	s.Endpoint = path
	return nil
}

// Modules is the directory, in one of plugins, of modules that are no plugins by themselves: a JSON file names each, as
// ".modules/NAME.wasm". So code and settings change with that one file.
const Modules = ".modules"

func readModuleName(s *settings, text string) error {
	name := strings.TrimPrefix(text, Modules+"/")
	if name != filepath.Base(name) || filepath.Ext(name) != ".wasm" || strings.HasPrefix(name, ".") {
		return fmt.Errorf("%.64q is not the name of a .wasm file beside this one, or in %s beside it", text, Modules)
	}
	s.Module = text
	return nil
}

// readPolicy takes no other spelling: a misspelt "Fail" that silently ignores is an outage found too late. An empty text is
// an absent key.
func readPolicy(s *settings, v json.RawMessage) error {
	text, err := decode[string](v, aString)
	if err != nil {
		text = string(compact(v))
	}
	for _, p := range []plugin.FailurePolicy{plugin.Ignore, plugin.Fail} {
		switch {
		case err == nil && (text == "" || text == p.String()):
			s.Policy = p
			return nil
		case strings.EqualFold(text, p.String()):
			return fmt.Errorf("%.64q is neither \"Ignore\" nor \"Fail\" (did you mean %q?)", text, p)
		}
	}
	return fmt.Errorf("%.64q is neither \"Ignore\" nor \"Fail\"", text)
}

const aTimeout = `a duration such as "500ms"`

func hookTimeout(s *settings) *time.Duration { return &s.Timeout }

func readTimeout(of func(*settings) *time.Duration) func(*settings, string) error {
	return func(s *settings, text string) error {
		d, err := time.ParseDuration(text)
		switch {
		case err != nil:
			return fmt.Errorf("%.64q is not %s", text, aTimeout)
		case d <= 0:
			return fmt.Errorf("%.64q is not greater than 0", text)
		case d > plugin.MaxTimeout:
			return fmt.Errorf("%.64q is more than %v, the most that a plugin can have", text, plugin.MaxTimeout)
		}
		*of(s) = d
		return nil
	}
}

func readTickPeriod(s *settings, text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return fmt.Errorf(`%.64q is not a duration such as "10s"`, text)
	case d < abi.MinTickMS*time.Millisecond:
		return fmt.Errorf("%.64q is less than %v, the shortest period", text, abi.MinTickMS*time.Millisecond)
	}
	s.TickPeriod = d
	return nil
}

func readDigest(s *settings, text string) error {
	if b, err := hex.DecodeString(text); err != nil || len(b) != 32 {
		return fmt.Errorf("%.64q is not a SHA-256 in hex", text)
	}
	s.sha256 = strings.ToLower(text)
	return nil
}

func readEnabled(s *settings, v json.RawMessage) error {
	on, err := decode[*bool](v, "true or false")
	s.Disabled = on != nil && !*on
	return err
}

func readGrant(s *settings, v json.RawMessage) error {
	list, err := decode[[]json.RawMessage](v, "a list of capabilities")
	if err != nil {
		return err
	}
	var names []string
	for _, one := range list {
		var name string
		if json.Unmarshal(one, &name) != nil {
			if name, err = s.readBounds(one); err != nil {
				return err
			}
		}
		if slices.Contains(names, name) {
			return fmt.Errorf("%s is there twice", plugin.Printable(name, 64))
		}
		names = append(names, name)
	}
	granted, wrong := abi.CapabilitiesNamed(names)
	if slices.Contains(names, "*") { // an operator names what a plugin gets
		wrong = []string{"*"}
	}
	if len(wrong) > 0 {
		return unknown("capability", wrong[0], abi.AllCapabilities.Names())
	}
	s.Grant = granted
	return nil
}

// readBounds reads a grant that is bound to some paths or kinds, and returns its name.
func (s *settings) readBounds(v json.RawMessage) (name string, err error) {
	const want = `a capability such as "env", or one with what it is bound to, such as {"mounts": ["/opt/tools"]}`
	bound, err := decode[map[string][]string](v, want)
	if err != nil || len(bound) != 1 {
		return "", fmt.Errorf("%.64s is not %s", compact(v), want)
	}
	for of, patterns := range bound {
		name = of
		for one, what := range plugin.Bindable {
			if one.String() != of {
				continue
			}
			if len(patterns) == 0 {
				return "", fmt.Errorf("%s: want %s", of, what)
			}
			for _, pattern := range patterns {
				if wrong := plugin.CheckPattern(one, pattern); wrong != "" {
					return "", fmt.Errorf("%s: %s: want %s", of, wrong, what)
				}
			}
			if s.Bounds == nil {
				s.Bounds = plugin.GrantBounds{}
			}
			s.Bounds[one] = patterns
			return name, nil
		}
	}
	return "", fmt.Errorf("%.64q cannot be bound: mounts, devices and cdi can", name)
}

// hookSet returns the hooks among names, and the names that are no hooks.
func hookSet(names []string) (set abi.HookSet, unknown []string) {
	for _, name := range names {
		if h, ok := abi.HookByName(name); ok {
			set |= abi.HookSetOf(h)
		} else {
			unknown = append(unknown, name)
		}
	}
	return set, unknown
}

// unknown refuses a name of a kind of things, and lists the known ones.
func unknown(kind, name string, known []string) error {
	for _, other := range known {
		if strings.EqualFold(other, name) {
			return fmt.Errorf("unknown %s %.64q (did you mean %q?)", kind, name, other)
		}
	}
	return fmt.Errorf("unknown %s %.64q; known are %s", kind, name, strings.Join(known, ", "))
}
