// Package unitfile reads units of systemd, and the files that EnvironmentFile= names, as systemd does. It keeps where in
// its file each character of a value is, so that a value can be changed in place, and all else stays.
//
// It does not ask a running systemd, and does not know what a setting means.
package unitfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Char is a byte of a value, and where the bytes of the file are that it stands for.
type Char struct {
	Byte     byte
	File     string // as the caller names it
	From, To int
}

// Value is a text of which each byte knows its place.
type Value []Char

// Plain is a value whose bytes are a text from its beginning.
func Plain(file, text string) (v Value) {
	for i := range len(text) {
		v = append(v, Char{text[i], file, i, i + 1})
	}
	return v
}

func (v Value) String() string {
	b := make([]byte, len(v))
	for i, c := range v {
		b[i] = c.Byte
	}
	return string(b)
}

// Cut cuts around the first of a byte.
func (v Value) Cut(sep byte) (before, after Value, found bool) {
	for i, c := range v {
		if c.Byte == sep {
			return v[:i], v[i+1:], true
		}
	}
	return v, nil, false
}

func (v Value) trim() Value {
	for len(v) > 0 && isSpace(v[0].Byte) {
		v = v[1:]
	}
	for len(v) > 0 && isSpace(v[len(v)-1].Byte) {
		v = v[:len(v)-1]
	}
	return v
}

const space = " \t\r\n"

func isSpace(b byte) bool   { return strings.IndexByte(space, b) >= 0 }
func isComment(b byte) bool { return b == '#' || b == ';' }

// Option is a setting of a unit: NAME=VALUE.
type Option struct {
	Section, Name string
	Value         Value
}

// Options returns the settings of a unit or a drop-in, in their order. A backslash at the end of a line continues it,
// also over lines of comments.
func Options(file, content string) (all []Option) {
	section, at := "", 0
	var line Value
	for physical := range strings.Lines(content) {
		begin := at
		at += len(physical)
		text := strings.TrimRight(physical, "\r\n")
		if trimmed := strings.TrimLeft(text, space); trimmed != "" && isComment(trimmed[0]) {
			continue
		}
		more := Plain(file, text)
		for i := range more {
			more[i].From, more[i].To = more[i].From+begin, more[i].To+begin
		}
		line = append(line, more...)
		if (len(text)-len(strings.TrimRight(text, `\`)))%2 == 1 {
			line[len(line)-1].Byte = ' '
			continue
		}
		all, section = add(all, section, line.trim())
		line = nil
	}
	all, _ = add(all, section, line.trim())
	return all
}

func add(all []Option, section string, line Value) ([]Option, string) {
	text := line.String()
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		return all, text[1 : len(text)-1]
	}
	if name, value, ok := line.Cut('='); ok {
		all = append(all, Option{section, name.trim().String(), value.trim()})
	}
	return all, section
}

// Words splits a value as systemd does for ExecStart= and Environment=: at space, without quotes, and with the escapes
// of C.
func (v Value) Words() ([]Value, error) { return v.split(true) }

// Fields splits a variable as systemd does where a word of a command is $NAME: a backslash only keeps what follows it.
func (v Value) Fields() []Value {
	words, _ := v.split(false)
	return words
}

// ErrQuote is a quote that is not closed.
var ErrQuote = errors.New("a quote is not closed")

func (v Value) split(escapes bool) (words []Value, err error) {
	var word Value
	inWord, quote := false, byte(0)
	for i := 0; i < len(v); i++ {
		c := v[i]
		switch {
		case c.Byte == '\\' && i+1 < len(v):
			taken, n := v[i:].unescape(escapes)
			inWord, word = true, append(word, taken...)
			i += n - 1
		case quote != 0 && c.Byte == quote:
			quote = 0
		case quote == 0 && (c.Byte == '"' || c.Byte == '\''):
			inWord, quote = true, c.Byte
		case quote == 0 && isSpace(c.Byte):
			if inWord {
				words = append(words, word)
			}
			word, inWord = nil, false
		default:
			inWord, word = true, append(word, c)
		}
	}
	if inWord {
		words = append(words, word)
	}
	if quote != 0 {
		err = ErrQuote
	}
	return words, err
}

// unescape returns what the escape at the beginning of a value stands for, and how many bytes the escape has. One that
// is not known stays as it is.
func (v Value) unescape(known bool) (is Value, n int) {
	next := v[1].Byte
	switch {
	case next == '"', next == '\'', !known:
		return Value{{next, v[0].File, v[0].From, v[1].To}}, 2
	case next == 's':
		return Value{{' ', v[0].File, v[0].From, v[1].To}}, 2
	}
	const longest = 10 // \U0010ffff
	text := v[:min(len(v), longest)].String()
	r, wide, rest, err := strconv.UnquoteChar(text, 0)
	if err != nil {
		return v[:1], 1
	}
	n = len(text) - len(rest)
	bytes := []byte{byte(r)}
	if wide {
		bytes = []byte(string(r))
	}
	for _, b := range bytes {
		is = append(is, Char{b, v[0].File, v[0].From, v[n-1].To})
	}
	return is, n
}

// Expand puts variables into the words of a command: $NAME as a word of its own becomes the fields of the variable,
// ${NAME} in a word its value. A variable that is not set is empty.
func Expand(words []Value, variables map[string]Value) (all []Value) {
	for _, word := range words {
		text := word.String()
		if strings.HasPrefix(text, "$") && !strings.HasPrefix(text, "${") && !strings.HasPrefix(text, "$$") {
			all = append(all, variables[text[1:]].Fields()...)
			continue
		}
		all = append(all, word.braces(variables))
	}
	return all
}

func (v Value) braces(variables map[string]Value) (is Value) {
	text := v.String()
	for i := 0; i < len(v); i++ {
		end := strings.IndexByte(text[i:], '}')
		switch {
		case strings.HasPrefix(text[i:], "$$"):
			is = append(is, v[i])
			i++
		case strings.HasPrefix(text[i:], "${") && end > 0:
			is = append(is, variables[text[i+2:i+end]]...)
			i += end
		default:
			is = append(is, v[i])
		}
	}
	return is
}

// dirs are where systemd looks for units, from the one that wins.
var dirs = []string{
	"/etc/systemd/system.control", "/run/systemd/system.control", "/run/systemd/transient", "/run/systemd/generator.early",
	"/etc/systemd/system", "/etc/systemd/system.attached", "/run/systemd/system", "/run/systemd/system.attached", "/run/systemd/generator",
	"/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system", "/run/systemd/generator.late",
}

// Find returns the files of a unit in the order in which systemd reads them: its own, and its drop-ins by name. It
// returns none if there is neither. A drop-in that is a link to /dev/null hides others of its name.
// under returns where a file of the host is.
func Find(under func(string) string, unit string) (files []string) {
	for _, dir := range dirs {
		if _, err := os.Lstat(filepath.Join(under(dir), unit)); err == nil { // a file or a link
			files = append(files, filepath.Join(dir, unit))
			break
		}
	}
	byName := map[string]string{}
	kinds := []string{"service.d", unit + ".d"} // what is for the unit alone wins
	if len(files) == 0 || masked(under, files[0]) {
		kinds = kinds[1:]
	}
	for _, of := range kinds {
		for _, dir := range slices.Backward(dirs) {
			dropIns, _ := fs.Glob(os.DirFS(under(filepath.Join(dir, of))), "*.conf")
			for _, name := range dropIns {
				byName[name] = filepath.Join(dir, of, name)
			}
		}
	}
	own := len(files)
	for _, path := range byName {
		files = append(files, path)
	}
	slices.SortFunc(files[own:], func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	return slices.DeleteFunc(files, func(path string) bool { return masked(under, path) })
}

func masked(under func(string) string, path string) bool {
	target, err := os.Readlink(filepath.Join(under(filepath.Dir(path)), filepath.Base(path)))
	return err == nil && target == os.DevNull
}
