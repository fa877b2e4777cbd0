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
	"sigs.k8s.io/yaml"

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

// Load reads the settings from their sources. fs has been parsed, and Flags was
// called on it.
func Load(fs *pflag.FlagSet) (*Config, error) {
	return load(fs, nil)
}

// load takes other defaults than the settings' own, where there are any.
func load(fs *pflag.FlagSet, defaults map[string]string) (*Config, error) {
	c, from := new(Config), origins{}
	for _, s := range settings() {
		text, ok := defaults[s.key]
		if !ok {
			text = s.byDefault
		}
		if text == "" {
			continue
		}
		if err := s.set(c, text); err != nil {
			return nil, err
		}
	}
	path, err := fs.GetString(FileFlag)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(loadFile(c, path, from), loadEnv(c, from), loadFlags(c, fs, from)); err != nil {
		return nil, err
	}
	return c, from.name(c.Validate())
}

// maxFile is in bytes: a hundred times what a file with every setting has.
const maxFile = 1 << 20

func loadFile(c *Config, path string, from origins) error {
	if path == "" {
		return nil
	}
	text, err := regular.Read(path, maxFile, nil)
	if err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		from[key] = "config file " + path
		if err := setWritten(c, key, values[key]); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", from[key], err))
		}
	}
	return errors.Join(errs...)
}

// setWritten takes text only, or true and false for a switch. A number is refused: 240 could
// be a time span of any unit.
func setWritten(c *Config, key string, value any) error {
	s, ok := settingOf(key)
	if !ok {
		return fmt.Errorf("unknown key %q", key)
	}
	_, isBool := value.(bool)
	text, isText := value.(string)
	switch {
	case value == nil: // a key without a value
		s.field(c).SetZero()
		return nil
	case s.isSwitch() && isBool:
		return s.set(c, fmt.Sprint(value))
	case s.isSwitch():
		return wrong(key, "%v is not true or false", value)
	case isText:
		return s.set(c, text)
	}
	return wrong(key, "%v is not text; a time span has its unit, as 4m has", value)
}

func loadEnv(c *Config, from origins) error {
	var errs []error
	for name, value := range variables() {
		s, ok := settingOf(envKey(name))
		if !ok {
			continue // UnknownVariables has it
		}
		from[s.key] = "environment variable " + name
		if err := s.set(c, value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", from[s.key], err))
		}
	}
	return errors.Join(errs...)
}

// variables are those of the environment that begin with envPrefix, but for otherVariables.
func variables() map[string]string {
	all := map[string]string{}
	for _, variable := range os.Environ() {
		name, value, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, envPrefix) && !slices.Contains(otherVariables, name) {
			all[name] = value
		}
	}
	return all
}

// UnknownVariables returns the names of the environment variables with the prefix
// WASMPROXY_ that are no setting, sorted. They are ignored: Kubernetes makes such
// variables for a Service named wasmproxy.
func UnknownVariables() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(variables())), func(name string) bool {
		_, known := settingOf(envKey(name))
		return known
	})
}

func envKey(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "_", "-"))
}

// loadFlags takes the flags that were given; the others' defaults are settled.
func loadFlags(c *Config, fs *pflag.FlagSet, from origins) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		key, renamed := koordNames[f.Name]
		if !renamed {
			key = f.Name
		}
		s, ok := settingOf(key)
		if !ok {
			return
		}
		if from[key] = ""; renamed {
			from[key] = "--" + f.Name
		}
		err = errors.Join(err, s.set(c, f.Value.String()))
	})
	return err
}

// setting is a field of Config.
type setting struct {
	key, byDefault, usage string
	index                 []int
	kind                  reflect.Type
}

func (s setting) isSwitch() bool { return s.kind.Kind() == reflect.Bool }

func (s setting) field(c *Config) reflect.Value {
	return reflect.ValueOf(c).Elem().FieldByIndex(s.index)
}

// flag adds the setting's flag.
func (s setting) flag(fs *pflag.FlagSet) {
	switch s.kind {
	case reflect.TypeFor[time.Duration]():
		d, _ := time.ParseDuration(s.byDefault) // TestDefaults holds that it parses
		fs.Duration(s.key, d, s.usage)
	case reflect.TypeFor[bool]():
		fs.Bool(s.key, false, s.usage)
	default:
		fs.String(s.key, s.byDefault, s.usage)
	}
}

// set decodes a text into the setting's field.
func (s setting) set(c *Config, text string) (err error) {
	switch field := s.field(c).Addr().Interface().(type) {
	case *time.Duration:
		if *field, err = time.ParseDuration(text); err != nil {
			return wrong(s.key, "%q is not a time span such as 4m", text)
		}
	case *bool:
		if *field, err = strconv.ParseBool(text); err != nil {
			return wrong(s.key, "%q is not true or false", text)
		}
	case *string:
		*field = text
	}
	return nil
}

// settings lists the fields of Config by their tags, the one table of settings.
func settings() []setting {
	var all []setting
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		all = append(all, setting{f.Tag.Get("key"), f.Tag.Get("default"), f.Tag.Get("usage"), f.Index, f.Type})
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
