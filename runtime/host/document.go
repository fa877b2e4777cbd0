package host

import (
	"regexp"
	"strings"
)

// findKey returns where the value of a key at the top of a configuration is. Which of the places that look so it is, and
// whether it can be edited there, its decoder tells: with another value in that place, the key has that value.
func (t text) findKey(field string) []place {
	looks := regexp.MustCompile(`(?m)(?:^|[\s{,])["']?` + field + `["']?[ \t]*:[ \t]*("[^"\n]*"|'[^'\n]*'|[^\s,}#]*)`)
	value, _ := t.has(key{field: field})
	for _, at := range looks.FindAllStringSubmatchIndex(t.content, -1) {
		p := place{from: at[2], to: at[3], value: value}
		if p.from == p.to {
			p.from = strings.LastIndexByte(t.content[:p.to], ':') + 1
			p.to = p.from
		}
		probe := t
		probe.content = t.content[:p.from] + ` "\u0000"` + t.content[p.to:]
		if got, _ := probe.has(key{field: field}); got == "\x00" {
			return []place{p}
		}
	}
	return nil
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

// has reports whether a configuration has the key, and its value.
func (t text) has(k key) (value string, has bool) {
	all, _ := t.decode() // which was checked when it was read
	is, has := all[k.field]
	value, _ = is.(string)
	return value, has
}
