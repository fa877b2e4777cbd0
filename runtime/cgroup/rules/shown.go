package rules

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// shower turns a line that was written into the line that the kernel then shows. held is what
// the file, or the line of the same device, held before. "" is a line that goes away.
type shower func(line, held string) string

// Shown returns what a file shows after a value that [Set.Parse] returned was written to it.
// held is what it showed before, in v2's form. systemd may round a quota besides.
// An unknown file shows what was written.
func (s Set) Shown(file, value, held string) string {
	x, err := Lookup(file)
	if err != nil {
		return value
	}
	if !x.Lines {
		return x.show(int(s), value, held)
	}
	lines := keyedLines(held)
	for line := range strings.SplitSeq(value, "\n") {
		of := firstWord(line)
		at := slices.IndexFunc(lines, func(l string) bool { return firstWord(l) == of })
		if at < 0 {
			lines = append(lines, x.show(int(s), line, ""))
		} else {
			lines[at] = x.show(int(s), line, lines[at])
		}
	}
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n")
}

// Holds reports whether a file that shows held has the value already: to write it would change
// nothing.
func (s Set) Holds(file, value, held string) bool {
	x, _ := Find(file)
	shown := s.Shown(file, value, held)
	if x != nil && x.Lines {
		return strings.Join(keyedLines(held), "\n") == shown
	}
	return strings.TrimSpace(held) == shown
}

// Undo returns the value that makes a file which shows now show before again, ready to write;
// "" if it shows that already. An empty cpuset is a newline.
func (s Set) Undo(file, before, now string) string {
	x, err := Lookup(file)
	switch {
	case err != nil || !x.Lines:
		if strings.TrimSpace(before) == strings.TrimSpace(now) {
			return ""
		}
		if before == "" {
			return "\n"
		}
		return before
	}
	was := keyedLines(before)
	var lines []string
	for _, line := range keyedLines(now) {
		of := firstWord(line)
		if !slices.ContainsFunc(was, func(l string) bool { return firstWord(l) == of }) {
			lines = append(lines, x.unset(of))
		}
	}
	for _, line := range was {
		if !s.Holds(file, line, now) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// unset is the line that takes the value of a device or resource away.
func (x *File) unset(of string) string {
	switch x.Name {
	case "io.weight", "io.bfq.weight":
		return of + " default"
	case "io.latency":
		return of + " target=max"
	case "misc.max":
		return of + " max"
	case "rdma.max":
		return of + " " + strings.Join(rdmaKeys, "=max ") + "=max"
	}
	return of + " " + strings.Join(ioKeys, "=max ") + "=max"
}

func (x *File) show(version int, line, held string) string {
	if version == 1 && x.V1 != nil && x.V1.round != nil {
		line = x.V1.round(line)
	}
	if x.shown == nil {
		return line
	}
	return x.shown(line, held)
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

// pages rounds bytes down to whole pages.
func pages(value, _ string) string { return rounded(value, int64(os.Getpagesize())) }

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

// withPeriod adds the period to a quota without one: the present one, else the kernel's default.
func withPeriod(value, held string) string {
	if strings.Contains(value, " ") {
		return value
	}
	_, period, ok := strings.Cut(strings.TrimSpace(held), " ")
	if !ok {
		period = "100000"
	}
	return value + " " + period
}

// clamped is a percentage that the kernel keeps in 1024ths, of which all are max.
func clamped(value, _ string) string {
	units, decimals, _ := strings.Cut(value, ".")
	n, err := strconv.Atoi(units + decimals)
	if err == nil && (n*1024+5_000)/10_000 == 1024 {
		return "max"
	}
	return value
}

// sorted is a list in the kernel's form: ascending, with the longest ranges.
func sorted(value, _ string) string {
	var all []int
	for part := range strings.SplitSeq(value, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		for n := from; n <= to; n++ {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	var parts []string
	for i := 0; i < len(all); {
		last := i
		for last+1 < len(all) && all[last+1] == all[last]+1 {
			last++
		}
		part := strconv.Itoa(all[i])
		if last > i {
			part += "-" + strconv.Itoa(all[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ",")
}

func noDefault(line, _ string) string {
	if of, weight, _ := strings.Cut(line, " "); of != "default" && weight == "default" {
		return ""
	}
	return line
}

func noTarget(line, _ string) string {
	if limit, _ := keyIn(line, "target"); limit == "max" || limit == "0" {
		return ""
	}
	return line
}

// ioLimits is a device with all limits. One without any goes away.
func ioLimits(line, held string) string {
	shown := completed(ioKeys, line, held)
	if shown == firstWord(line)+" rbps=max wbps=max riops=max wiops=max" {
		return ""
	}
	return shown
}

func rdmaLimits(line, held string) string { return completed(rdmaKeys, line, held) }

// completed adds the keys that a line does not name, with the values that are held.
func completed(keys []string, line, held string) string {
	out := firstWord(line)
	for _, key := range keys {
		value, given := keyIn(line, key)
		if !given {
			value, given = keyIn(held, key)
		}
		if !given {
			value = "max"
		}
		out += " " + key + "=" + capped(key, value)
	}
	return out
}
