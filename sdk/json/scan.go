package json

import wp "github.com/wasmproxy/wasmproxy/sdk"

// maxDepth is how deep values may be nested.
const maxDepth = 64

// value returns where the value at i ends. If it is no JSON, wrong says why, and end is where.
func value(text string, i, depth int) (end int, wrong string) {
	switch c := peek(text, i); {
	case c == '{' || c == '[':
		return nested(text, i, depth)
	case c == '"':
		return quoted(text, i)
	case c == '-' || digit(c):
		return number(text, i)
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if n := i + len(word); n <= len(text) && text[i:n] == word {
			return n, ""
		}
	}
	return i, "a value is missing"
}

// nested is value for an object or a list.
func nested(text string, i, depth int) (end int, wrong string) {
	open := text[i]
	closing := open + 2 // in ASCII
	if depth == maxDepth {
		return i, "the value is nested too deeply"
	}
	i = space(text, i+1)
	if peek(text, i) == closing {
		return i + 1, ""
	}
	for {
		if open == '{' {
			if i, wrong = keyed(text, i); wrong != "" {
				return i, wrong
			}
		}
		if i, wrong = value(text, i, depth+1); wrong != "" {
			return i, wrong
		}
		i = space(text, i)
		switch peek(text, i) {
		case closing:
			return i + 1, ""
		case ',':
			i = space(text, i+1)
		default:
			return i, "a comma or " + string(rune(closing)) + " is missing"
		}
	}
}

// keyed returns where the value of the member at i begins.
func keyed(text string, i int) (value int, wrong string) {
	if peek(text, i) != '"' {
		return i, "a key in quotes is missing"
	}
	if i, wrong = quoted(text, i); wrong != "" {
		return i, wrong
	}
	if i = space(text, i); peek(text, i) != ':' {
		return i, "a colon is missing"
	}
	return space(text, i+1), ""
}

func quoted(text string, i int) (end int, wrong string) {
	for i++; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return i + 1, ""
		case c < ' ':
			return i, "a control character is in a string"
		case c == '\\':
			n := escape(text[i:])
			if n == 0 {
				return i, "an escape in a string is wrong"
			}
			i += n - 1
		}
	}
	return i, "a string does not end"
}

// escape returns how many bytes the escape has that a text begins with, 0 if it is none.
func escape(text string) int {
	switch peek(text, 1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if hex(text) >= 0 {
			return 6
		}
	}
	return 0
}

// hex returns the number of \uXXXX, -1 if the text does not begin with it.
func hex(text string) (n rune) {
	if len(text) < 6 || text[:2] != `\u` {
		return -1
	}
	for i := 2; i < 6; i++ {
		c := text[i]
		letter := c | 0x20 - 'a'
		switch {
		case digit(c):
			n = n<<4 | rune(c-'0')
		case letter < 6:
			n = n<<4 | rune(letter+10)
		default:
			return -1
		}
	}
	return n
}

func number(text string, i int) (end int, wrong string) {
	start := i
	if text[i] == '-' {
		i++
	}
	first := i
	i = digits(text, i)
	good := i > first && (text[first] != '0' || i == first+1)
	if peek(text, i) == '.' {
		begin := i + 1
		i = digits(text, begin)
		good = good && i > begin
	}
	if peek(text, i)|0x20 == 'e' {
		begin := i + 1
		if c := peek(text, begin); c == '+' || c == '-' {
			begin++
		}
		i = digits(text, begin)
		good = good && i > begin
	}
	if !good {
		return start, "a number is not as JSON has it"
	}
	return i, ""
}

func digits(text string, i int) int {
	for digit(peek(text, i)) {
		i++
	}
	return i
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// space passes white space.
func space(text string, i int) int {
	for i < len(text) {
		switch text[i] {
		case ' ', '\t', '\n', '\r':
			i++
			continue
		}
		break
	}
	return i
}

// peek returns a byte, 0 behind the end.
func peek(text string, i int) byte {
	if i < len(text) {
		return text[i]
	}
	return 0
}

// member is a member of an object or an element of a list: the places of its parts.
type member struct {
	text    string
	keyAt   int  // of the quote before its key; the same as at for an element
	at, end int  // its value
	broken  bool // the value is no JSON, and end is where
}

// holds reports whether a place is in the member.
func (m member) holds(at int) bool { return at < m.end || m.broken && at == m.end }

func (m member) key() string {
	end, _ := quoted(m.text, m.keyAt)
	return unquoted(m.text[m.keyAt:end])
}

// cursor goes through an object or a list.
type cursor struct {
	text   string
	at     int // of the next member
	object bool
}

func enter(text string, at int) cursor { return cursor{text, space(text, at+1), text[at] == '{'} }

// next returns the next member. In a text that is no JSON the last one ends where it is wrong.
func (c *cursor) next() (m member, ok bool) {
	at, wrong := c.at, ""
	if c.object {
		at, wrong = keyed(c.text, at)
	}
	if first := peek(c.text, at); wrong != "" || first == 0 || first == ']' {
		return m, false
	}
	end, wrong := value(c.text, at, 0)
	m = member{c.text, c.at, at, end, wrong != ""}
	c.at = len(c.text)
	if i := space(c.text, end); wrong == "" && peek(c.text, i) == ',' {
		c.at = space(c.text, i+1)
	}
	return m, true
}

// pathTo returns the keys and numbers of what is around a place in a text, such as rules[1].name.
func pathTo(text string, to int) (path string) {
	i := space(text, 0)
	for i < to && (text[i] == '{' || text[i] == '[') {
		c := enter(text, i)
		n := int64(0)
		m, ok := c.next()
		for ; ok && !m.holds(to); m, ok = c.next() {
			n++
		}
		switch {
		case !ok || m.keyAt > to:
			return path
		case !c.object:
			path += "[" + wp.FormatInt(n) + "]"
		case path == "":
			path = m.key()
		default:
			path += "." + m.key()
		}
		if to < m.at {
			return path
		}
		i = m.at
	}
	return path
}

// unquoted returns the text of a string that is JSON. Half of a surrogate pair becomes U+FFFD.
func unquoted(raw string) string {
	raw = raw[1 : len(raw)-1]
	at := 0
	for at < len(raw) && raw[at] != '\\' {
		at++
	}
	if at == len(raw) {
		return raw
	}
	out := append(make([]byte, 0, len(raw)), raw[:at]...)
	for at < len(raw) {
		if raw[at] != '\\' {
			out = append(out, raw[at])
			at++
			continue
		}
		if raw[at+1] != 'u' {
			out = append(out, unescaped(raw[at+1]))
			at += 2
			continue
		}
		r := hex(raw[at:])
		at += 6
		if low := hex(raw[at:]); r>>10 == 0xd800>>10 && low>>10 == 0xdc00>>10 {
			r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
			at += 6
		}
		out = append(out, string(r)...)
	}
	return string(out)
}

func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}
