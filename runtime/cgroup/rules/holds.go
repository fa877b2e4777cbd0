package rules

import (
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// same reports whether a line that a file shows is what the kernel makes of a line that was written.
// held is "" if the file shows no line of the device or resource.
type same func(line, held string) bool

// Holds reports whether a file that shows held has the value already, which [Set.Parse] returned: to
// write it would change nothing. The kernel shows bytes in whole pages, all limits of a device, and a
// list in order. systemd may round a quota besides.
func (s Set) Holds(file, value, held string) bool {
	x := Find(file)
	if x == nil || !x.Lines {
		return x.holds(s, value, strings.TrimSpace(held))
	}
	lines := keyedLines(held)
	for line := range strings.SplitSeq(value, "\n") {
		if !x.holds(s, line, lineOf(firstWord(line), lines)) {
			return false
		}
	}
	return true
}

// holds is Holds of one line. An unknown file, which is nil, shows what was written.
func (x *File) holds(s Set, line, held string) bool {
	if x == nil {
		return line == held
	}
	if v1 := x.V1; s == 1 && v1 != nil && v1.round != nil {
		line = v1.round(line)
	}
	if x.same == nil {
		return line == held
	}
	return x.same(line, held)
}

// Undo returns the value that makes a file which shows now show before again, ready to write;
// "" if it shows that already. An empty cpuset is a newline.
func (s Set) Undo(file, before, now string) string {
	x := Find(file)
	if x == nil || !x.Lines {
		switch {
		case strings.TrimSpace(before) == strings.TrimSpace(now):
			return ""
		case before == "":
			return "\n"
		}
		return before
	}
	was := keyedLines(before)
	var lines []string
	for _, line := range keyedLines(now) {
		if of := firstWord(line); lineOf(of, was) == "" {
			lines = append(lines, of+" "+x.unset)
		}
	}
	for _, line := range was {
		if !s.Holds(file, line, now) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// keyedLines are the lines of a file, without spaces around them.
func keyedLines(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func firstWord(line string) string {
	word, _, _ := strings.Cut(line, " ")
	return word
}

// lineOf returns the line of a device or resource; "" if there is none.
func lineOf(of string, lines []string) string {
	if at := slices.IndexFunc(lines, func(l string) bool { return firstWord(l) == of }); at >= 0 {
		return lines[at]
	}
	return ""
}

// inPages is same for bytes in whole pages.
func inPages(value, held string) bool { return rounded(value, int64(os.Getpagesize())) == held }

// rounded rounds bytes down to a multiple. The largest of those is no limit.
func rounded(value string, multiple int64) string {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return value
	}
	if n /= multiple; n == math.MaxInt64/multiple {
		return "max"
	}
	return strconv.FormatInt(n*multiple, 10)
}

// withPeriod is same for a quota, which may name no period.
func withPeriod(value, held string) bool { return value == held || strings.HasPrefix(held, value+" ") }

// clamped is same for a percentage that the kernel keeps in 1024ths, of which all are max.
func clamped(value, held string) bool {
	n, err := strconv.Atoi(strings.Replace(value, ".", "", 1))
	if err == nil && (n*1024+5_000)/10_000 == 1024 {
		return held == "max"
	}
	return value == held
}

// sameNumbers is same for a list, which the kernel shows in order.
func sameNumbers(value, held string) bool {
	return value == held || IsList(held) && maps.Equal(Numbers(value), Numbers(held))
}

// weighed is same for a weight, of which a device that has the default has no line.
func weighed(line, held string) bool {
	return line == held || held == "" && strings.HasSuffix(line, " default")
}

// limited is same for the keys that a line names. What the kernel does not show is no limit.
func limited(line, held string) bool {
	for word := range strings.FieldsSeq(line) {
		key, value, keyed := strings.Cut(word, "=")
		shown, there := keyIn(held, key)
		if !there {
			shown = "max"
		}
		if keyed && capped(key, value) != shown {
			return false
		}
	}
	return true
}
