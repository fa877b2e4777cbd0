package unitfile

import "strings"

// Variable is a line of a file that EnvironmentFile= names.
type Variable struct {
	Name  string
	Value Value
}

// Variables returns those of a file in their order. The last one of a name counts.
func Variables(file, content string) (all []Variable) {
	s := &scanner{text: Plain(file, content)}
	for {
		for s.skip(isSpace) && isComment(s.text[s.at].Byte) {
			s.skip(func(b byte) bool { return !isNewline(b) })
		}
		if s.at >= len(s.text) {
			return all
		}
		begin := s.at
		s.skip(func(b byte) bool { return b != '=' && !isNewline(b) })
		name := s.text[begin:s.at].trim().String()
		is := s.on(isNewline) // of a line without = nothing is taken
		s.at++
		if is {
			all = append(all, Variable{name, s.value()})
		}
	}
}

// scanner reads the format of parse_env_file of systemd.
type scanner struct {
	text Value
	at   int
}

func isNewline(b byte) bool { return b == '\n' || b == '\r' }

// on reports whether there is a byte that is not one of those.
func (s *scanner) on(not func(byte) bool) bool { return s.at < len(s.text) && !not(s.text[s.at].Byte) }

// skip goes to the first byte that is not one of those, and reports whether there is one.
func (s *scanner) skip(those func(byte) bool) bool {
	for s.at < len(s.text) && those(s.text[s.at].Byte) {
		s.at++
	}
	return s.at < len(s.text)
}

// value reads to the end of the line. Quotes count at its beginning only, and after other quotes.
func (s *scanner) value() (v Value) {
	for s.skip(func(b byte) bool { return isSpace(b) && !isNewline(b) }) {
		switch s.text[s.at].Byte {
		case '\'':
			s.at++
			begin := s.at
			s.skip(func(b byte) bool { return b != '\'' })
			v = append(v, s.text[begin:s.at]...)
			s.at++
		case '"':
			s.at++
			v = append(v, s.quoted()...)
		default:
			return append(v, s.plain()...)
		}
	}
	return v
}

// quoted reads to the closing double quote. A backslash stands before what a shell would replace; else it stays.
func (s *scanner) quoted() (v Value) {
	for s.at < len(s.text) {
		c := s.text[s.at]
		s.at++
		switch {
		case c.Byte == '"':
			return v
		case c.Byte == '\\' && s.at < len(s.text):
			next := s.text[s.at]
			s.at++
			if strings.IndexByte("\"\\`$", next.Byte) >= 0 {
				v = append(v, Char{next.Byte, c.File, c.From, next.To})
			} else if next.Byte != '\n' {
				v = append(v, c, next)
			}
		default:
			v = append(v, c)
		}
	}
	return v
}

// plain reads to the end of the line, without the space there. A backslash keeps what follows, or continues the line.
func (s *scanner) plain() (v Value) {
	kept := 0
	for s.on(isNewline) {
		c := s.text[s.at]
		s.at++
		if c.Byte == '\\' && s.at < len(s.text) {
			next := s.text[s.at]
			s.at++
			if isNewline(next.Byte) {
				continue
			}
			v = append(v, Char{next.Byte, c.File, c.From, next.To})
			kept = len(v)
			continue
		}
		if v = append(v, c); !isSpace(c.Byte) {
			kept = len(v)
		}
	}
	return v[:kept]
}
