package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/wasmproxy/wasmproxy/runtime/unitfile"
)

// key is a setting of kubelet that names an endpoint: its flag and its key in the file.
type key struct{ flag, field string }

var (
	runtimeKey = key{"container-runtime-endpoint", "containerRuntimeEndpoint"}
	imageKey   = key{"image-service-endpoint", "imageServiceEndpoint"}
	keys       = []key{runtimeKey, imageKey}
)

// text is the content of one of kubelet's files, which is edited in place: comments, order
// and everything else in it stay.
type text struct {
	path    string // as the host has it
	content string
	yaml    bool // KubeletConfiguration in YAML or JSON; otherwise flags, in an environment file or a unit
}

// place is where a value is in a text. It has the quotes of a configuration, and not those of a flag.
type place struct {
	from, to int
	value    string // without quotes
}

// values returns the values of the key that are not empty, in their order.
func (t text) values(k key) (all []string) {
	for _, p := range t.find(k) {
		if p.value != "" {
			all = append(all, p.value)
		}
	}
	return all
}

// find returns the places of the key's values, which may be empty. Those in a form that cannot be edited are left out.
func (t text) find(k key) (all []place) {
	if !t.yaml {
		for _, words := range t.words() {
			for _, f := range flagsIn(words) {
				if from, to, ok := span(f.value); ok && f.name == k.flag {
					all = append(all, place{from, to, f.value.String()})
				}
			}
		}
		return all
	}

	// The key is at the top of the configuration. Which of the places that look so it is, and whether it can be edited there,
	// its decoder tells: with another value in that place, the key has that value.
	looks := regexp.MustCompile(`(?m)(?:^|[\s{,])["']?` + k.field + `["']?[ \t]*:[ \t]*("[^"\n]*"|'[^'\n]*'|[^\s,}#]*)`)
	value, _ := t.has(k)
	for _, at := range looks.FindAllStringSubmatchIndex(t.content, -1) {
		p := place{from: at[2], to: at[3], value: value}
		if p.from == p.to {
			p.from = strings.LastIndexByte(t.content[:p.to], ':') + 1
			p.to = p.from
		}
		probe := t
		probe.content = t.content[:p.from] + ` "\u0000"` + t.content[p.to:]
		if got, _ := probe.has(k); got == "\x00" {
			return []place{p}
		}
	}
	return nil
}

// has reports whether a configuration has the key, and its value.
func (t text) has(k key) (value string, has bool) {
	all, _ := t.decode() // which was checked when it was read
	is, has := all[k.field]
	value, _ = is.(string)
	return value, has
}

// words returns the words of each value that may hold flags, as systemd splits it.
func (t text) words() (all [][]unitfile.Value) {
	unit := strings.HasSuffix(t.path, ".service") || strings.HasSuffix(filepath.Dir(t.path), "service.d")
	if !unit {
		for _, v := range unitfile.Variables(t.path, t.content) {
			all = append(all, v.Value.Fields())
		}
		return all
	}
	for _, o := range unitfile.Options(t.path, t.content) {
		words, _ := o.Value.Words()
		switch {
		case o.Section != "Service":
		case o.Name == "ExecStart":
			all = append(all, words)
		case o.Name == "Environment":
			for _, w := range words {
				_, value, _ := w.Cut('=')
				all = append(all, value.Fields())
			}
		}
	}
	return all
}

// span returns where a value is in its file, if it is there in one piece.
func span(v unitfile.Value) (from, to int, ok bool) {
	for i := range len(v) - 1 {
		if v[i].To != v[i+1].From {
			return 0, 0, false
		}
	}
	if len(v) == 0 {
		return 0, 0, false
	}
	return v[0].From, v[len(v)-1].To, true
}

// set gives each value of the key that old accepts the new value.
func (t text) set(k key, value string, old func(string) bool) text {
	for _, p := range slices.Backward(t.find(k)) {
		if !old(p.value) {
			continue
		}
		put := value
		switch was := t.content[p.from:p.to]; {
		case !t.yaml:
		case strings.HasPrefix(was, `'`):
			put = `'` + value + `'`
		case strings.HasPrefix(was, `"`), t.json():
			put = `"` + value + `"`
		}
		if p.from == p.to && t.content[p.from-1] == ':' {
			put = " " + put
		}
		t.content = t.content[:p.from] + put + t.content[p.to:]
	}
	return t
}

// add writes a key into a configuration that does not have it: as the first one of JSON, and at the end of YAML.
func (t text) add(k key, value string) text {
	if t.flow() {
		before, after, _ := strings.Cut(t.content, "{")
		space := after[:len(after)-len(strings.TrimLeft(after, " \t\r\n"))]
		comma := ","
		if strings.HasPrefix(strings.TrimSpace(after), "}") {
			comma, space = "", ""
		} else if space == "" {
			comma = ", "
		}
		t.content = before + "{" + space + `"` + k.field + `": "` + value + `"` + comma + after
		return t
	}
	if t.content != "" && !strings.HasSuffix(t.content, "\n") {
		t.content += "\n"
	}
	t.content += k.field + ": " + value + "\n"
	return t
}

// check compares a configuration before and after an edit, as kubelet decodes it: nothing but
// the endpoints may differ, and they must be what the edit was to make of them.
func (t text) check(before text) error {
	if !t.yaml {
		return nil
	}
	was, err := before.decode()
	if err != nil {
		return err
	}
	is, err := t.decode()
	if err != nil {
		return err
	}
	for _, k := range keys {
		want := ""
		if values := t.values(k); len(values) > 0 {
			want = values[0]
		}
		if got, _ := is[k.field].(string); got != want || len(t.values(k)) > 1 {
			return fmt.Errorf("changing %s in %s: it is written in a form that this command cannot change; change it by hand", k.field, t.path)
		}
		delete(was, k.field)
		delete(is, k.field)
	}
	if !reflect.DeepEqual(was, is) {
		return fmt.Errorf("changing the endpoint in %s: more than the endpoint would change; change it by hand", t.path)
	}
	return nil
}

// decode reads a configuration as kubelet does: JSON, or else YAML.
func (t text) decode() (map[string]any, error) {
	all := map[string]any{}
	if t.json() {
		return all, json.Unmarshal([]byte(t.content), &all)
	}
	if err := yaml.Unmarshal([]byte(t.content), &all); err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.path, err)
	}
	return all, nil
}

// json reports whether a configuration is JSON, flow whether it is written as JSON is.
func (t text) json() bool { return t.flow() && json.Valid([]byte(t.content)) }
func (t text) flow() bool { return strings.HasPrefix(strings.TrimSpace(t.content), "{") }

// errNoEndpoint is of a host without kubelet's files.
var errNoEndpoint = errors.New("finding kubelet's endpoint")
