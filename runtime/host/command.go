package host

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/wasmproxy/wasmproxy/runtime/unitfile"
)

// flag is one of a command line. The value of one that has none is nil.
type flag struct {
	name  string
	value unitfile.Value
	file  string // that has its name
}

// flagsIn returns the flags among words, as kubelet reads them: --NAME=VALUE or --NAME VALUE. An underscore is a dash.
func flagsIn(words []unitfile.Value) (all []flag) {
	for i, word := range words {
		name, value, has := word.Cut('=')
		text, is := strings.CutPrefix(name.String(), "--")
		if !is || text == "" {
			continue
		}
		if !has && i+1 < len(words) {
			value = words[i+1]
		}
		all = append(all, flag{strings.ReplaceAll(text, "_", "-"), value, word[0].File})
	}
	return all
}

// lastFlag returns the value of the flag that counts, of those of a name.
func lastFlag(words []unitfile.Value, name string) (value string, ok bool) {
	for _, f := range flagsIn(words) {
		if f.name == name {
			value, ok = f.value.String(), true
		}
	}
	return value, ok
}

// flagged reports whether the endpoints of the command line come from a file.
func (k *kubelet) flagged(path string) bool {
	return slices.ContainsFunc(flagsIn(k.args), func(f flag) bool {
		if f.name != runtimeKey.flag && f.name != imageKey.flag {
			return false
		}
		return f.file == path || len(f.value) > 0 && f.value[0].File == path
	})
}

var (
	aFlag     = regexp.MustCompile(`^--(container-runtime-endpoint|image-service-endpoint|config|config-dir)(=|$)`)
	endpoints = regexp.MustCompile(`(container-runtime|image-service)-endpoint`)
	inScript  = regexp.MustCompile(`(^|\s)-?-(config|config-dir)([\s=]|$)`)
)

// checkArgs requires that the flags which name endpoints and configurations are understood. Nothing is known about a
// kubelet whose flag was passed over.
func checkArgs(args []unitfile.Value) error {
	for i, word := range args {
		text := word.String()
		name, rest, _ := strings.Cut(text, "=")
		name = strings.ReplaceAll(name, "_", "-")
		if len(text) > len(name) {
			rest = "=" + rest
		}
		switch text := name + rest; {
		case aFlag.MatchString(text):
			if rest == "" && i+1 == len(args) {
				return fmt.Errorf("reading kubelet's flags in %s: %s has no value", word[0].File, name)
			}
		case aFlag.MatchString("-" + text):
			return fmt.Errorf("reading kubelet's flags in %s: kubelet does not start with %s, which has one dash: write two", word[0].File, name)
		case endpoints.MatchString(text), inScript.MatchString(text):
			return fmt.Errorf("reading kubelet's flags in %s: it is not known what kubelet makes of %q: write it as --NAME=VALUE, as a word of its own", word[0].File, word)
		}
	}
	return nil
}

// service is what a unit says about how it starts its program.
type service struct {
	texts []text // that it has its command line from: environment files and units
	args  []unitfile.Value
}

// service reads a unit as systemd does. It is empty if there is no unit.
func (r reader) service(unit string) (s service, err error) {
	var units []text
	var environment, environmentFiles, start []unitfile.Value
	lists := map[string]*[]unitfile.Value{"Environment": &environment, "EnvironmentFile": &environmentFiles, "ExecStart": &start}
	for _, path := range unitfile.Find(r.root.Under, unit) {
		t, has, err := r.text(path, false)
		if err != nil {
			return s, err
		}
		if has {
			units = append(units, t)
		}
		for _, o := range unitfile.Options(path, t.content) {
			list := lists[o.Name]
			switch {
			case o.Section != "Service" || list == nil:
			case len(o.Value) == 0: // which systemd takes as a new beginning
				*list = nil
			default:
				*list = append(*list, o.Value)
			}
		}
	}
	variables := map[string]unitfile.Value{}
	for _, line := range environment {
		words, err := line.Words()
		if err != nil {
			return s, fmt.Errorf("reading Environment= in %s: %w", line[0].File, err)
		}
		for _, w := range words {
			if name, value, ok := w.Cut('='); ok {
				variables[name.String()] = value
			}
		}
	}
	if s.texts, err = r.environmentFiles(unit, variables, environmentFiles); err != nil {
		return s, err
	}
	s.texts = append(s.texts, units...)
	if len(start) == 0 {
		return s, nil
	}
	line, raw := start[len(start)-1], false
	file := line[0].File
	for len(line) > 0 && strings.IndexByte("@-:+!|", line[0].Byte) >= 0 { // prefixes of the program
		raw = raw || line[0].Byte == ':'
		line = line[1:]
	}
	if s.args, err = line.Words(); err != nil {
		return s, fmt.Errorf("reading ExecStart= in %s: %w", file, err)
	}
	if !raw {
		s.args = unitfile.Expand(s.args, variables)
	}
	return s, nil
}

// environmentFiles reads those of a unit. A variable in them wins over Environment=.
func (r reader) environmentFiles(unit string, variables map[string]unitfile.Value, lines []unitfile.Value) (all []text, err error) {
	name := strings.TrimSuffix(unit, ".service")
	specifiers := strings.NewReplacer("%%", "%", "%n", unit, "%N", name, "%p", name)
	for _, line := range lines {
		pattern := specifiers.Replace(strings.TrimPrefix(line.String(), "-"))
		dir, name := filepath.Split(pattern)
		names := []string{name}
		if strings.ContainsAny(name, "*?[") {
			if names, err = fs.Glob(os.DirFS(r.root.Under(dir)), name); err != nil {
				return nil, fmt.Errorf("reading EnvironmentFile=%s in %s: %w", pattern, line[0].File, err)
			}
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			t, has, err := r.text(path, false)
			if err != nil {
				return nil, err
			}
			for _, v := range unitfile.Variables(path, t.content) {
				variables[v.Name] = v.Value
			}
			if has {
				all = append(all, t)
			}
		}
	}
	return all, nil
}
