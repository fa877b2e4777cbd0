package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable returns text as one line without anything that a terminal obeys: each rune
// that is not printable becomes its escape sequence in Go. For the names of files there
// is plugin.Name.
func printable(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[:size])
		} else {
			quoted := strconv.Quote(text[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		text = text[size:]
	}
	return b.String()
}

// indented joins lines, each made printable, those after the first behind an indent.
func indented(indent string, lines []string) string {
	return strings.Join(texts(lines, printable), "\n"+indent)
}

// texts returns the text of each of all.
func texts[T any](all []T, text func(T) string) []string {
	var texts []string
	for _, one := range all {
		texts = append(texts, text(one))
	}
	return texts
}

// printError writes an error for people: one line for each error that is joined in it,
// and further lines of one error indented, so that no name can pass for a line of output.
func printError(out io.Writer, err error) {
	prefix := "wasmproxy: "
	for _, err := range joined(err) {
		fmt.Fprintf(out, "%s%s\n", prefix, indented("  ", strings.Split(err.Error(), "\n")))
		prefix = ""
	}
}

// joined are the errors that errors.Join made one of.
func joined(err error) (all []error) {
	if err == nil {
		return nil
	}
	if own, ok := err.(coded); ok {
		err = own.error
	}
	several, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(several.Unwrap()...).Error() != err.Error() { // it says more than they do
		return []error{err}
	}
	for _, one := range several.Unwrap() {
		all = append(all, joined(one)...)
	}
	return all
}
