package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// rows writes keys and values in two columns.
type rows struct{ *tabwriter.Writer }

func (r rows) add(key, format string, args ...any) {
	fmt.Fprintf(r, "%s\t%s\n", key, printable(fmt.Sprintf(format, args...)))
}

func (r rows) addSome(key, text string) {
	if text != "" {
		r.add(key, "%s", text)
	}
}

func (about inspection) print(out io.Writer) error {
	r := rows{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	r.addSome("name", strings.TrimSpace(about.Name+" "+about.Version))
	r.addSome("description", about.Description)
	r.addSome("license", about.License)
	r.addSome("sdk", about.SDK)
	for _, h := range about.Hooks {
		match, err := json.Marshal(h.Match)
		if err != nil {
			return err
		}
		if string(match) == "{}" { // it takes everything
			r.add("hook", "%s", h.Hook)
		} else {
			r.add("hook", "%s matching %s", h.Hook, match)
		}
	}
	if about.TickMS > 0 {
		r.add("tick", "every %d ms", about.TickMS)
	}
	if r.addSome("abi", about.NeedsABI); about.ABI != about.NeedsABI {
		r.add("abi", "built for %s", about.ABI)
	}
	r.addSome("manifest", about.ManifestSource)
	if len(about.Durable) == 0 {
		r.add("state", "%s", about.State)
	} else {
		r.add("state", "%s, durable values of keys that begin with %q", about.State, about.Durable)
	}
	if len(about.ConfigSchema) > 0 {
		r.add("config", "checked by a schema of %d bytes", len(about.ConfigSchema))
	}
	c := about.Capabilities
	r.addSome("capabilities", strings.Join(c.Declared, ", "))
	r.addSome("granted", strings.Join(c.Granted, ", "))
	if len(c.Missing) > 0 {
		r.add("denied", "%s: add  %s  to %s", strings.Join(c.Missing, ", "), c.Add, c.To)
	}
	for _, l := range about.Limits {
		r.add("limit", "%s", l)
	}
	r.add("size", "%d bytes", about.Size)
	r.add("sha256", "%s", about.SHA256)
	if about.MemoryMax == 0 {
		r.add("memory", "%d KiB, no maximum of its own", about.MemoryMin>>10)
	} else {
		r.add("memory", "%d KiB, at most %d KiB", about.MemoryMin>>10, about.MemoryMax>>10)
	}
	for _, s := range about.Sections {
		r.add("section", "%s, %d bytes", s.Name, s.Size)
	}
	for _, i := range about.Imports {
		r.add("import", "%s.%s %s: %s", i.Module, i.Name, i.Type, i.meaning())
	}
	r.addSome("exports", strings.Join(about.Exports, ", "))
	for _, warning := range about.Warnings {
		r.add("warning", "%s", warning)
	}
	for _, problem := range about.Problems {
		r.add("problem", "%s", problem)
	}
	return r.Flush()
}

// meaning says what a call of the import does.
func (i imported) meaning() string {
	switch i.State {
	case wasm.Denied:
		return "linked, but disabled: a call fails with an error of WASI"
	case wasm.Absent:
		return "optional and not in this version: a call returns UNSUPPORTED"
	case wasm.Undeclared:
		return fmt.Sprintf("linked; the manifest does not declare %s, so a call returns DENIED", needs(i.Module, i.Name))
	}
	return string(i.State)
}

func (l limit) String() string {
	text := fmt.Sprintf("%s %s", strings.TrimSuffix(l.Of, "_ms"), l.amount(l.Gets))
	switch {
	case l.Needs == 0:
		return text
	case !l.Enough:
		return text + fmt.Sprintf(", too low for the %s that it needs", l.amount(l.Needs))
	case l.Gets == l.Needs:
		return text + fmt.Sprintf(", as its manifest says; the maximum is %s", l.amount(l.Max))
	}
	return text + fmt.Sprintf(", enough for the %s that it needs", l.amount(l.Needs))
}

// amount writes a number with its unit.
func (l limit) amount(n int64) string {
	switch {
	case strings.HasSuffix(l.Of, "_ms"):
		return fmt.Sprintf("%d ms", n)
	case l.Of != "memory":
		return strconv.FormatInt(n, 10)
	case n < 1<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return strconv.FormatFloat(float64(n)/(1<<20), 'f', -1, 64) + " MiB"
}
