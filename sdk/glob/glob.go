// Package glob matches names as the operator's match does: "*" stands for any run of characters but "/", "?" for
// one of them, "[a-z]" for one of a class and "[^a-z]" for one that is not; "\" takes the next character as it is. That
// is path.Match, which would bring reflection into a plugin that TinyGo builds.
//
// It knows neither "**" nor "{a,b}".
package glob

import "unicode/utf8"

// Accepts reports whether a list of globs accepts a name, as a list in the operator's match does: one glob matches, and
// none of those that begin with "!" does. A list of such globs alone accepts all other names; an empty list accepts everything.
func Accepts(globs []string, name string) bool {
	within, wanted := false, false
	for _, glob := range globs {
		if glob != "" && glob[0] == '!' {
			if Match(glob[1:], name) {
				return false
			}
			continue
		}
		within, wanted = within || Match(glob, name), true
	}
	return within || !wanted
}

// Match reports whether a glob matches a whole name. One that is not [Valid] matches nothing.
// It goes back no further than to the last "*", so that no glob takes long.
func Match(glob, name string) bool {
	if !Valid(glob) {
		return false
	}
	starred, star, next := false, "", "" // what follows the last *, and what it has not taken yet
	for {
		switch {
		case glob != "" && glob[0] == '*':
			glob = glob[1:]
			starred, star, next = true, glob, name
			continue
		case glob == "" && name == "":
			return true
		case glob != "" && name != "":
			if used, taken := one(glob, name); taken > 0 {
				glob, name = glob[used:], name[taken:]
				continue
			}
		}
		if !starred || next == "" || next[0] == '/' {
			return false
		}
		next = next[1:]
		glob, name = star, next
	}
}

// one returns how much of a glob its first element is, and how much of the name that takes, 0 if it does not match.
func one(glob, name string) (used, taken int) {
	switch glob[0] {
	case '?':
		if name[0] == '/' {
			return 1, 0
		}
		_, taken = utf8.DecodeRuneInString(name)
		return 1, taken
	case '[':
		c, size := utf8.DecodeRuneInString(name)
		used, matches := class(glob, c)
		if !matches {
			size = 0
		}
		return used, size
	case '\\':
		glob = glob[1:]
		used = 1
	}
	if glob[0] != name[0] {
		return used + 1, 0
	}
	return used + 1, 1
}

// Valid reports whether a text is a glob: each class ends and has a character, and a "\" comes before something.
func Valid(glob string) bool {
	for i := 0; i < len(glob); i++ {
		switch glob[i] {
		case '\\':
			if i++; i == len(glob) {
				return false
			}
		case '[':
			used, _ := class(glob[i:], 0)
			if used == 0 {
				return false
			}
			i += used - 1
		}
	}
	return true
}

// class returns how long the class is that a glob begins with, 0 if it is none, and whether the character is in it.
func class(glob string, c rune) (used int, matches bool) {
	i := 1
	not := len(glob) > i && glob[i] == '^'
	if not {
		i++
	}
	found := false
	for first := true; first || i >= len(glob) || glob[i] != ']'; first = false {
		low, n := classRune(glob[i:])
		if n == 0 {
			return 0, false
		}
		i += n
		high := low
		if i < len(glob) && glob[i] == '-' {
			if high, n = classRune(glob[i+1:]); n == 0 {
				return 0, false
			}
			i += n + 1
		}
		found = found || low <= c && c <= high
	}
	return i + 1, found != not
}

// classRune returns the first character of a class, and how long it is as it is written, 0 if there is none.
func classRune(class string) (c rune, n int) {
	switch {
	case class == "" || class[0] == '-' || class[0] == ']':
		return 0, 0
	case class[0] == '\\':
		n = 1
	}
	c, size := utf8.DecodeRuneInString(class[n:])
	cut := n+size == len(class) // nothing follows
	if bad := c == utf8.RuneError && size <= 1; bad || cut {
		return 0, 0
	}
	return c, n + size
}
