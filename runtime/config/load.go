package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

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
	switch byDefault := s.of(Default()).(type) {
	case *time.Duration:
		fs.Duration(s.key, *byDefault, s.usage)
	case *bool:
		fs.Bool(s.key, *byDefault, s.usage)
	case *int64:
		fs.Int64(s.key, *byDefault, s.usage)
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

// With is Load with these values of flags, of which FileFlag may be one, and no others.
func With(flags map[string]string) (*Config, error) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(fs)
	for name, value := range flags {
		if err := fs.Set(name, value); err != nil {
			return nil, err
		}
	}
	return Load(fs)
}

// LoadFrom is Load with a file that was read before.
func LoadFrom(fs *pflag.FlagSet, file File) (*Config, error) { return load(fs, file, nil) }

// Default returns the settings that hold if no source sets them.
func Default() *Config {
	c := new(Config)
	for _, s := range settings() {
		if s.byDefault == "" {
			continue
		}
		if err := s.parse(c, s.byDefault); err != nil {
			panic(err) // TestDefaults
		}
	}
	return c
}

// load takes other defaults than the settings' own, by their keys, where there are any.
func load(fs *pflag.FlagSet, file File, defaults map[string]string) (*Config, error) {
	c, from := Default(), origins{}
	written, err := file.values()
	errs := []error{err}
	took := func(s setting, origin string, err error) {
		from[s.key] = origin
		errs = append(errs, from.name(errors.Join(err)))
	}
	for key, text := range defaults {
		s, _ := settingOf(key)
		errs = append(errs, s.parse(c, text))
	}
	for _, key := range slices.Sorted(maps.Keys(written)) {
		if s, ok := settingOf(key); ok {
			took(s, "config file "+file.Path, s.decode(c, written[key]))
		} else {
			errs = append(errs, fmt.Errorf("config file %s: unknown key %q", file.Path, key))
		}
	}
	environment := variables()
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		if s, ok := settingOf(envKey(name)); ok {
			took(s, "environment variable "+name, s.parse(c, environment[name]))
		}
	}
	fs.Visit(func(f *pflag.Flag) { // those that were given
		key, origin := f.Name, ""
		if koord, ok := koordNames[key]; ok {
			key, origin = koord, "--"+f.Name
		}
		if s, ok := settingOf(key); ok {
			took(s, origin, s.parse(c, f.Value.String()))
		}
	})
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, from.name(c.Validate())
}

// maxFile is in bytes: a hundred times what a file with every setting has.
const maxFile = 1 << 20

// values are what the file has written, by keys.
func (f File) values() (all map[string]any, err error) {
	if f.Err != nil {
		return nil, f.Err
	}
	if err := yaml.Unmarshal(f.Text, &all); err != nil {
		return nil, fmt.Errorf("config file %s: %w", f.Path, err)
	}
	return all, nil
}

// variables are those of the environment that have the prefix WASMPROXY_, with their values.
func variables() map[string]string {
	all := map[string]string{}
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, envPrefix) {
			all[name] = value
		}
	}
	return all
}

// UnknownVariables returns the names of the environment variables with the prefix
// WASMPROXY_ that are no setting, sorted. They are ignored: Kubernetes makes such
// variables for a Service named wasmproxy.
func UnknownVariables() (names []string) {
	for name := range variables() {
		if _, known := settingOf(envKey(name)); !known && !slices.Contains(otherVariables, name) {
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
	field                 int
}

// of returns a pointer to the field.
func (s setting) of(c *Config) any {
	return reflect.ValueOf(c).Elem().Field(s.field).Addr().Interface()
}

// parse gives the field the value of a text.
func (s setting) parse(c *Config, text string) (err error) {
	form := ""
	switch to := s.of(c).(type) {
	case *string:
		*to = text
	case *List:
		err = to.UnmarshalText([]byte(text))
	case *bool:
		form = "true or false"
		*to, err = strconv.ParseBool(text)
	case *int64:
		form = "a whole number"
		*to, err = strconv.ParseInt(text, 10, 64)
	case *time.Duration:
		form = "a time span such as 4m"
		*to, err = time.ParseDuration(text)
	}
	if err != nil {
		return wrong(s.key, "%q is not %s", text, form)
	}
	return nil
}

// decode gives the field a value of the file. It takes text only, or true and false for a switch, or a list of texts for a
// list, or a whole number for one: 240 could else be a time span of nanoseconds. A key without a value is the empty one.
func (s setting) decode(c *Config, value any) error {
	to := s.of(c)
	if value == nil {
		reflect.ValueOf(to).Elem().SetZero()
		return nil
	}
	text, isText := value.(string)
	switch to := to.(type) {
	case *bool:
		var ok bool
		if *to, ok = value.(bool); !ok {
			return wrong(s.key, "%v is not true or false", value)
		}
		return nil
	case *int64:
		if n, ok := value.(int); ok {
			*to = int64(n)
			return nil
		}
		if !isText {
			return wrong(s.key, "%v is not a whole number", value)
		}
	case *List:
		if isText {
			break
		}
		all, ok := value.([]any)
		*to = nil
		for _, one := range all {
			text, isText := one.(string)
			*to, ok = append(*to, text), ok && isText
		}
		if !ok {
			return wrong(s.key, "%v is not a list of texts, nor a text with commas between them", value)
		}
		return nil
	default:
		if !isText {
			return wrong(s.key, "%v is not text; a time span has its unit, as 4m has", value)
		}
	}
	return s.parse(c, text)
}

// settings lists the fields of Config by their tags, the one table of settings.
func settings() (all []setting) {
	for i, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		all = append(all, setting{f.Tag.Get("key"), f.Tag.Get("default"), f.Tag.Get("usage"), i})
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
