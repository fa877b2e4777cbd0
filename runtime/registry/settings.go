package registry

import (
	"encoding/hex"
	"encoding/json"
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
	endpoint string
	module   string // name of a module beside the file
	policy   plugin.FailurePolicy
	unclear  bool     // a policy is given and cannot be read
	hooks    []string // nil if none are named
	timeout  time.Duration
	config   json.RawMessage
	sha256   string
	engine   string // "" if none is named
	disabled bool
	match    abi.Match
	order    string // "" stands for the file's name
	dryRun   bool
	allowance
}

// key reads one key's value into settings. A value of null is an absent key.
type key struct {
	name string
	read func(*settings, json.RawMessage) error
}

// hookserverKeys are Koordinator's, and this project's that mean something for a
// hook server.
var hookserverKeys = []key{
	{"remote-endpoint", readEndpoint},
	{"failure-policy", readPolicy},
	{"runtime-hooks", readHooks},
	{"timeout", readTimeout},
	{"match", readMatch},
	{"order", readOrder},
}

// pluginKeys are those of the plugin directory.
var pluginKeys = slices.Concat(hookserverKeys, allowanceKeys, []key{
	{"wasm-module", readModuleName},
	{"config", readConfig},
	{"sha256", readDigest},
	{"engine", readEngine},
	{"enabled", readEnabled},
	{"dry-run", readDryRun},
})

// What runs a module, as an operator names it.
const (
	engineAuto        = "auto"
	engineInterpreter = "interpreter"
)

// maxSocket is the longest path of a unix socket in bytes: sun_path without its NUL.
const maxSocket = len(syscall.RawSockaddrUnix{}.Path) - 1

func readEndpoint(s *settings, v json.RawMessage) error {
	text, err := decode[string](v, "a string")
	if err != nil || text == "" {
		return err
	}
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
	s.endpoint = path
	return nil
}

func readModuleName(s *settings, v json.RawMessage) error {
	text, err := decode[string](v, "a string")
	if err != nil || text == "" {
		return err
	}
	if text != filepath.Base(text) || filepath.Ext(text) != ".wasm" || strings.HasPrefix(text, ".") {
		return fmt.Errorf("%.64q is not the name of a .wasm file beside this one", text)
	}
	s.module = text
	return nil
}

// readPolicy takes a misspelt "Fail" for what it was meant to be while it
// reports it: until the file is corrected the plugin does not run.
func readPolicy(s *settings, v json.RawMessage) error {
	text, err := decode[string](v, "a string")
	if err == nil {
		s.policy, err = plugin.ParseFailurePolicy(text)
	} else {
		text = string(compact(v))
	}
	if s.unclear = err != nil; err == nil {
		return nil
	}
	for _, p := range []plugin.FailurePolicy{plugin.Ignore, plugin.Fail} {
		if strings.EqualFold(text, p.String()) {
			s.policy = p
			return fmt.Errorf("%.64q is neither \"Ignore\" nor \"Fail\" (did you mean %q?)", text, p)
		}
	}
	return fmt.Errorf("%.64q is neither \"Ignore\" nor \"Fail\"", text)
}

func readHooks(s *settings, v json.RawMessage) (err error) {
	s.hooks, err = decode[[]string](v, "a list of hook names")
	return err
}

func readTimeout(s *settings, v json.RawMessage) error {
	text, err := decode[string](v, `a duration such as "500ms"`)
	if err != nil || text == "" {
		return err
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf(`%.64q is not a duration such as "500ms"`, text)
	}
	if d <= 0 {
		return fmt.Errorf("%.64q is not greater than 0", text)
	}
	if d > plugin.MaxTimeout {
		return fmt.Errorf("%.64q is more than %v, the most that a plugin can have", text, plugin.MaxTimeout)
	}
	s.timeout = d
	return nil
}

func readConfig(s *settings, v json.RawMessage) error {
	s.config = compact(v)
	return nil
}

func readDigest(s *settings, v json.RawMessage) error {
	text, err := decode[string](v, "a string")
	if err != nil || text == "" {
		return err
	}
	if b, err := hex.DecodeString(text); err != nil || len(b) != 32 {
		return fmt.Errorf("%.64q is not a SHA-256 in hex", text)
	}
	s.sha256 = strings.ToLower(text)
	return nil
}

func readEngine(s *settings, v json.RawMessage) error {
	text, err := decode[string](v, "a string")
	if err != nil || text == "" {
		return err
	}
	if text != engineAuto && text != engineInterpreter {
		return fmt.Errorf("%.64q is neither %q nor %q", text, engineAuto, engineInterpreter)
	}
	s.engine = text
	return nil
}

func readEnabled(s *settings, v json.RawMessage) error {
	on, err := decode[*bool](v, "true or false")
	s.disabled = on != nil && !*on
	return err
}

func readMatch(s *settings, v json.RawMessage) (err error) {
	s.match, err = plugin.ParseMatch(compact(v))
	return err
}

// readOrder takes the text by which the plugin is sorted instead of its file's
// name. A number is refused: 5 would come after 10.
func readOrder(s *settings, v json.RawMessage) (err error) {
	s.order, err = decode[string](v, `a string such as "15", which is compared as names of files are`)
	return err
}

// hookSet returns the hooks among names, and the names that are none.
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

// unknownHook refuses a name in runtime-hooks.
func unknownHook(name string) error {
	var names []string
	for _, info := range abi.Hooks {
		names = append(names, info.Name)
	}
	return fmt.Errorf("runtime-hooks: %w", unknown("hook", name, names))
}
