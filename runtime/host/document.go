package host

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	goyaml "go.yaml.in/yaml/v3"
)

// findKey returns where the values of a key at the top of a configuration are.
func (t text) findKey(field string) []place {
	if t.json() {
		return t.findJSON(field)
	}
	var doc goyaml.Node
	if goyaml.Unmarshal([]byte(t.content), &doc) != nil || len(doc.Content) == 0 {
		return nil
	}
	var all []place
	pairs := doc.Content[0].Content
	for i := 0; doc.Content[0].Kind == goyaml.MappingNode && i+1 < len(pairs); i += 2 {
		if pairs[i].Value != field {
			continue
		}
		if p, ok := t.scalar(pairs[i], pairs[i+1]); ok {
			all = append(all, p)
		}
	}
	return all
}

// scalar returns where a value of one line is that is a text or nothing. Anchors and aliases are neither.
func (t text) scalar(key, value *goyaml.Node) (p place, ok bool) {
	p.key = t.offset(key)
	if value.Kind != goyaml.ScalarNode || value.Anchor != "" {
		return p, false
	}
	p.value = value.Value
	if value.Tag == "!!null" && value.Value == "" {
		colon := strings.IndexByte(t.content[p.key:], ':')
		p.from = p.key + colon + 1
		p.to = p.from
		return p, colon > 0
	}
	p.from = t.offset(value)
	if quote := t.content[p.from]; quote == '"' || quote == '\'' {
		end := strings.IndexByte(t.content[p.from+1:], quote)
		p.to = p.from + end + 2
		return p, end >= 0 && t.content[p.from+1:p.to-1] == value.Value
	}
	p.to = p.from + len(value.Value)
	return p, strings.HasPrefix(t.content[p.from:], value.Value)
}

// offset returns where a node begins. Its column counts characters.
func (t text) offset(n *goyaml.Node) int {
	at := 0
	for range n.Line - 1 {
		at += strings.IndexByte(t.content[at:], '\n') + 1
	}
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(t.content[at:])
		at += size
	}
	return at
}

func (t text) findJSON(field string) (all []place) {
	d := json.NewDecoder(strings.NewReader(t.content))
	_, err := d.Token() // the opening brace
	for err == nil && d.More() {
		key, _ := d.Token()
		keyEnd := int(d.InputOffset())
		var raw json.RawMessage
		if err = d.Decode(&raw); err != nil || key != field {
			continue
		}
		end := int(d.InputOffset())
		raw = bytes.TrimSpace(raw)
		p := place{key: keyEnd - len(field) - 2, from: end - len(raw), to: end}
		_ = json.Unmarshal(raw, &p.value) // null and what is no text is an empty value
		all = append(all, p)
	}
	return all
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

// write gives a key of a configuration its value, whether or not it has one.
func (t text) write(k key, value string) text {
	if len(t.find(k)) > 0 {
		return t.set(k, value, func(string) bool { return true })
	}
	return t.add(k, value)
}

// has reports whether a configuration has the key, and its value.
func (t text) has(k key) (value string, has bool) {
	all, _ := t.decode() // which was checked when it was read
	is, has := all[k.field]
	value, _ = is.(string)
	return value, has
}
