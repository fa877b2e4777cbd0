package config

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
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
		if s.isDuration {
			d, _ := time.ParseDuration(s.byDefault) // TestDefaults holds that it parses
			fs.Duration(s.key, d, s.usage)
			continue
		}
		fs.String(s.key, s.byDefault, s.usage)
	}
}

// Load reads the settings from their sources. fs has been parsed, and Flags was
// called on it.
func Load(fs *pflag.FlagSet) (*Config, error) {
	k := koanf.New(".")
	path, err := fs.GetString(FileFlag)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(loadDefaults(k), loadFile(k, path), loadEnv(k), loadFlags(k, fs)); err != nil {
		return nil, err
	}
	c := new(Config)
	if err := k.Unmarshal("", c); err != nil {
		return nil, fmt.Errorf("reading the settings: %w", err)
	}
	return c, c.Validate()
}

func loadDefaults(k *koanf.Koanf) error {
	defaults := map[string]any{}
	for _, s := range settings() {
		defaults[s.key] = s.byDefault
	}
	return k.Load(confmap.Provider(defaults, "."), nil)
}

func loadFile(k *koanf.Koanf, path string) error {
	if path == "" {
		return nil
	}
	written := koanf.New(".")
	if err := written.Load(file.Provider(path), yaml.Parser()); err != nil {
		return fmt.Errorf("config file %s: %w", path, err)
	}
	var errs []error
	for _, key := range written.Keys() {
		if err := checkWritten(key, written.Get(key)); err != nil {
			errs = append(errs, fmt.Errorf("config file %s: %w", path, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return k.Merge(written)
}

// checkWritten takes text only. A number would be decoded too, and 240 be a time
// span of nanoseconds.
func checkWritten(key string, value any) error {
	if !known(key) {
		return fmt.Errorf("unknown key %q", key)
	}
	switch value.(type) {
	case string, nil: // nil is a key without a value
		return nil
	}
	return fmt.Errorf("%s: %v is not text; a time span has its unit, as 4m has", key, value)
}

func loadEnv(k *koanf.Koanf) error {
	var unknown []error
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, envPrefix) && !known(envKey(name)) && !slices.Contains(otherVariables, name) {
			unknown = append(unknown, fmt.Errorf("environment variable %s: no setting has this name", name))
		}
	}
	if err := errors.Join(unknown...); err != nil {
		return err
	}
	return k.Load(env.Provider(".", env.Opt{
		Prefix: envPrefix,
		TransformFunc: func(name, value string) (string, any) {
			if key := envKey(name); known(key) {
				return key, value
			}
			return "", nil
		},
	}), nil)
}

func envKey(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, envPrefix), "_", "-"))
}

// loadFlags takes the flags that were given; the others' defaults are settled.
func loadFlags(k *koanf.Koanf, fs *pflag.FlagSet) error {
	return k.Load(posflag.ProviderWithFlag(fs, ".", nil, func(f *pflag.Flag) (string, any) {
		if !f.Changed || !known(f.Name) {
			return "", nil
		}
		return f.Name, f.Value.String()
	}), nil)
}

// setting is a field of Config.
type setting struct {
	key, byDefault, usage string
	isDuration            bool
}

// settings lists the fields of Config by their tags, the one table of settings.
func settings() []setting {
	var all []setting
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		all = append(all, setting{
			key: f.Tag.Get("koanf"), byDefault: f.Tag.Get("default"), usage: f.Tag.Get("usage"),
			isDuration: f.Type == reflect.TypeFor[time.Duration](),
		})
	}
	return all
}

func known(key string) bool {
	return slices.ContainsFunc(settings(), func(s setting) bool { return s.key == key })
}
