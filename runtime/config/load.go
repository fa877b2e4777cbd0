package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// envPrefix comes before a key in the environment: WASMPROXY_LOG_LEVEL.
const envPrefix = "WASMPROXY_"

// FileFlag names the flag that gives the YAML file.
const FileFlag = "config"

// otherVariables are those of the prefix that are no settings: they are for the
// project's build and tests.
var otherVariables = []string{"WASMPROXY_CACHE"}

// Flags adds a flag for every setting, and FileFlag, to fs.
func Flags(fs *pflag.FlagSet) {
	fs.String(FileFlag, "", "YAML file with any of these settings by the names of their flags")
	for _, s := range settings() {
		s.flag(fs)
	}
}

func (s setting) flag(fs *pflag.FlagSet) {
	switch s.kind {
	case reflect.TypeFor[time.Duration]():
		d, _ := time.ParseDuration(s.byDefault) // TestDefaults holds that it parses
		fs.Duration(s.key, d, s.usage)
	case reflect.TypeFor[bool]():
		fs.Bool(s.key, false, s.usage)
	case reflect.TypeFor[int64]():
		n, _ := strconv.ParseInt(s.byDefault, 10, 64) // TestDefaults likewise
		fs.Int64(s.key, n, s.usage)
	default:
		fs.String(s.key, s.byDefault, s.usage)
	}
}

// File is a settings file as it was read. Without a file its Path is empty.
type File struct {
	Path string // as FileFlag gives it
	Text []byte
	Err  error // why it could not be read; it names the file
}

// ReadFile reads the settings file that fs names.
func ReadFile(fs *pflag.FlagSet) File {
	path, err := fs.GetString(FileFlag)
	if err != nil || path == "" {
		return File{Err: err}
	}
	text, err := regular.Read(path, maxFile, nil)
	if err == nil && len(text) == 0 { // as a file system may leave it after a crash
		err = errors.New("is empty; write a comment into it if every setting is to have its default")
	}
	if err != nil {
		err = fmt.Errorf("config file %s: %w", path, err)
	}
	return File{path, text, err}
}

// Load reads the settings from their sources. fs has been parsed, and Flags was
// called on it.
func Load(fs *pflag.FlagSet) (*Config, error) { return LoadFrom(fs, ReadFile(fs)) }

// NoVariables is an environment for With.
func NoVariables() []string { return nil }

// With is Load with these values of flags, of which FileFlag may be one, and no others, in this
// environment, as os.Environ has it.
func With(flags map[string]string, environ func() []string) (*Config, error) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(fs)
	for name, value := range flags {
		if err := fs.Set(name, value); err != nil {
			return nil, err
		}
	}
	return load(fs, ReadFile(fs), nil, environ)
}

// LoadFrom is Load with a file that was read before.
func LoadFrom(fs *pflag.FlagSet, file File) (*Config, error) { return load(fs, file, nil, os.Environ) }

// Default returns the settings that hold if no source sets them.
func Default() *Config {
	k, c := koanf.New("."), new(Config)
	if err := errors.Join(loadDefaults(k, nil), k.Unmarshal("", c)); err != nil {
		panic(err) // TestDefaults
	}
	return c
}

// load takes other defaults than the settings' own, where there are any.
func load(fs *pflag.FlagSet, file File, defaults map[string]any, environ func() []string) (*Config, error) {
	k := koanf.New(".")
	from := map[string]string{} // where a value was written, by its key: a file, a variable, or a flag of another name than the key's
	errs := []error{loadDefaults(k, defaults), loadFile(k, file, from)}
	err := k.Load(env.Provider(".", env.Opt{Prefix: envPrefix, EnvironFunc: environ, TransformFunc: func(name, value string) (string, any) {
		s, ok := settingOf(envKey(name))
		if !ok { // see UnknownVariables
			return "", nil
		}
		from[s.key] = "environment variable " + name
		if err := s.check(value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", from[s.key], err))
		}
		return s.key, value
	}}), nil)
	errs = append(errs, err)
	err = k.Load(posflag.ProviderWithFlag(fs, ".", nil, func(f *pflag.Flag) (string, any) {
		name := f.Name
		if key, old := koordNames[name]; old {
			name = key
		}
		if _, known := settingOf(name); !f.Changed || !known { // the defaults of flags are settled
			return "", nil
		}
		if from[name] = ""; f.Name != name {
			from[name] = "--" + f.Name
		}
		return name, f.Value.String()
	}), nil)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	c := new(Config)
	if err := k.Unmarshal("", c); err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}

	err = c.Validate() // each of whose errors is to say where the value was written
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return c, err
	}
	var named []error
	for _, err := range all.Unwrap() {
		var w *wrongError
		if errors.As(err, &w) && from[w.key] != "" {
			err = fmt.Errorf("%s: %w", from[w.key], err)
		}
		named = append(named, err)
	}
	return c, errors.Join(named...)
}

func loadDefaults(k *koanf.Koanf, others map[string]any) error {
	defaults := map[string]any{}
	for _, s := range settings() {
		if s.byDefault != "" || s.kind.Kind() == reflect.String {
			defaults[s.key] = s.byDefault
		}
	}
	maps.Copy(defaults, others)
	return k.Load(confmap.Provider(defaults, "."), nil)
}

// maxFile is in bytes: a hundred times what a file with every setting has.
const maxFile = 1 << 20

func loadFile(k *koanf.Koanf, file File, from map[string]string) error {
	path := file.Path
	if path == "" || file.Err != nil {
		return file.Err
	}
	values, documents := map[string]any{}, yaml.NewDecoder(bytes.NewReader(file.Text))
	if err := documents.Decode(&values); err != nil && err != io.EOF {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	for {
		var more any
		err := documents.Decode(&more)
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("config file %s: %w", path, err)
		}
		if more != nil {
			return fmt.Errorf("config file %s: it has a second YAML document, after a line with ---: put all settings into one", path)
		}
	}
	written := koanf.New(".")
	if err := written.Load(confmap.Provider(values, "."), nil); err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	errs := []error{k.Merge(written)}
	for _, key := range written.Keys() {
		from[key] = "config file " + path
		if err := checkWritten(key, written.Get(key)); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", from[key], err))
		}
	}
	return errors.Join(errs...)
}

// checkWritten takes text only, or true and false for a switch, or a list of texts for a list.
// A number would be decoded too, and 240 be a time span of nanoseconds.
func checkWritten(key string, value any) error {
	s, ok := settingOf(key)
	if !ok {
		return fmt.Errorf("unknown key %q", key)
	}
	switch value := value.(type) {
	case nil: // a key without a value
		return nil
	case bool:
		if s.isSwitch() {
			return nil
		}
	case int:
		if s.isNumber() {
			return nil
		}
	case []any:
		if s.isList() && !slices.ContainsFunc(value, func(v any) bool { _, text := v.(string); return !text }) {
			return nil
		}
	case string:
		if !s.isSwitch() {
			return s.check(value)
		}
	}
	switch {
	case s.isSwitch():
		return wrong(key, "%v is not true or false", value)
	case s.isNumber():
		return wrong(key, "%v is not a whole number", value)
	case s.isList():
		return wrong(key, "%v is not a list of texts, nor a text with commas between them", value)
	}
	return wrong(key, "%v is not text; a time span has its unit, as 4m has", value)
}

// check says what of a text cannot be decoded.
func (s setting) check(text string) error {
	switch s.kind {
	case reflect.TypeFor[time.Duration]():
		if _, err := time.ParseDuration(text); err != nil {
			return wrong(s.key, "%q is not a time span such as 4m", text)
		}
	case reflect.TypeFor[bool]():
		if _, err := strconv.ParseBool(text); err != nil {
			return wrong(s.key, "%q is not true or false", text)
		}
	case reflect.TypeFor[int64]():
		if n, err := strconv.ParseInt(text, 10, 64); err != nil || strconv.FormatInt(n, 10) != text { // 012 is 10 to koanf
			return wrong(s.key, "%q is not a whole number such as 5", text)
		}
	}
	return nil
}

// UnknownVariables returns the names of the environment variables with the prefix
// WASMPROXY_ that are no setting, sorted. They are ignored: Kubernetes makes such
// variables for a Service named wasmproxy.
func UnknownVariables() []string {
	var names []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if _, known := settingOf(envKey(name)); strings.HasPrefix(name, envPrefix) && !known && !slices.Contains(otherVariables, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func envKey(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "_", "-"))
}

// setting is a field of Config.
type setting struct {
	key, byDefault, usage string
	kind                  reflect.Type
}

func (s setting) isSwitch() bool { return s.kind.Kind() == reflect.Bool }
func (s setting) isNumber() bool { return s.kind == reflect.TypeFor[int64]() }
func (s setting) isList() bool   { return s.kind == reflect.TypeFor[List]() }

// settings lists the fields of Config by their tags, the one table of settings.
func settings() []setting {
	var all []setting
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		all = append(all, setting{f.Tag.Get("koanf"), f.Tag.Get("default"), f.Tag.Get("usage"), f.Type})
	}
	return all
}

func settingOf(key string) (setting, bool) {
	all := settings()
	i := slices.IndexFunc(all, func(s setting) bool { return s.key == key })
	if i < 0 {
		return setting{}, false
	}
	return all[i], true
}
