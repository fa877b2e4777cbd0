package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
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
	yaml    bool // KubeletConfiguration; otherwise flags, in an environment file or a unit
}

func newText(path string, content []byte) text {
	return text{path, string(content), filepath.Ext(path) == ".yaml"}
}

// pattern matches a value of the key, which is the group "value". In YAML it is a key at
// the beginning of a line.
func (t text) pattern(k key) *regexp.Regexp {
	if t.yaml {
		return regexp.MustCompile(`(?m)^` + k.field + `:[ \t]*(?P<value>"[^"\n]*"|'[^'\n]*'|[^\s#][^\s]*)?[ \t]*(?:#.*)?$`)
	}
	return regexp.MustCompile(`--` + k.flag + `(?:=|[ \t]+)(?P<value>[^\s"'\\]+)`)
}

// values returns the values of the key that are not empty, in their order. kubelet takes
// the last flag.
func (t text) values(k key) (all []string) {
	for _, at := range t.find(k) {
		if value := unquoted(t.content[at[0]:at[1]]); value != "" {
			all = append(all, value)
		}
	}
	return all
}

// find returns the places of the key's values, which may be empty. Comments do not count.
func (t text) find(k key) (all [][2]int) {
	for _, m := range t.pattern(k).FindAllStringSubmatchIndex(t.content, -1) {
		line := t.content[strings.LastIndexByte(t.content[:m[0]], '\n')+1 : m[0]]
		if strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		if m[2] < 0 { // a key without a value
			end := m[0] + len(k.field) + 1
			m[2], m[3] = end, end
		}
		all = append(all, [2]int{m[2], m[3]})
	}
	return all
}

func unquoted(value string) string { return strings.Trim(value, `"'`) }

// set gives each value of the key that old accepts the new value.
func (t text) set(k key, value string, old func(string) bool) text {
	places := t.find(k)
	slices.Reverse(places)
	for _, at := range places {
		was := t.content[at[0]:at[1]]
		if !old(unquoted(was)) {
			continue
		}
		put := value
		switch {
		case strings.HasPrefix(was, `"`), value == "" && t.yaml:
			put = `"` + value + `"`
		case strings.HasPrefix(was, `'`):
			put = `'` + value + `'`
		}
		if at[0] > 0 && t.content[at[0]-1] == ':' {
			put = " " + put
		}
		t.content = t.content[:at[0]] + put + t.content[at[1]:]
	}
	return t
}

// add writes the key at the end of a YAML file.
func (t text) add(k key, value string) text {
	if t.content != "" && !strings.HasSuffix(t.content, "\n") {
		t.content += "\n"
	}
	t.content += k.field + ": " + value + "\n"
	return t
}

// drop removes the line of a key whose value old accepts.
func (t text) drop(k key, old func(string) bool) text {
	for _, at := range t.find(k) {
		if old(unquoted(t.content[at[0]:at[1]])) {
			begin := strings.LastIndexByte(t.content[:at[0]], '\n') + 1
			_, rest, _ := strings.Cut(t.content[at[0]:], "\n")
			t.content = t.content[:begin] + rest
			break
		}
	}
	return t
}

// check compares a YAML file before and after an edit, as kubelet decodes it: nothing but
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
			return fmt.Errorf("changing %s in %s: the file is not written as kubeadm writes it; change it by hand", k.field, t.path)
		}
		delete(was, k.field)
		delete(is, k.field)
	}
	if !reflect.DeepEqual(was, is) {
		return fmt.Errorf("changing the endpoint in %s: more than the endpoint would change; change it by hand", t.path)
	}
	return nil
}

func (t text) decode() (map[string]any, error) {
	all := map[string]any{}
	if err := yaml.Unmarshal([]byte(t.content), &all); err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.path, err)
	}
	return all, nil
}

// errNoEndpoint is of a host without kubelet's files.
var errNoEndpoint = errors.New("finding kubelet's endpoint")
