package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/explain"
)

// printReport writes a report for people. diff says that it has only what differs.
func printReport(out io.Writer, r *explain.Report, diff bool) error {
	for i := range r.Pods {
		p := &r.Pods[i]
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "pod %s/%s, uid %s, %s\n", printable(p.Namespace), printable(p.Name), printable(cmp.Or(p.UID, "-")), printable(p.State))
		if p.Unowned != "" {
			fmt.Fprintf(out, "  owners are unknown of values that the pod had before: %s\n", printable(p.Unowned))
		}
		if len(p.Values) > 0 {
			if err := printObject(out, &p.Object, diff); err != nil {
				return err
			}
		}
		for k := range p.Containers {
			c := &p.Containers[k]
			fmt.Fprintf(out, "\ncontainer %s, id %s, %s\n", printable(c.Name), printable(c.ID), printable(c.State))
			if err := printObject(out, &c.Object, diff); err != nil {
				return err
			}
		}
	}
	return nil
}

func printObject(out io.Writer, o *explain.Object, diff bool) error {
	if o.Cgroup != "" {
		fmt.Fprintf(out, "  cgroup %s\n", printable(o.Cgroup))
	}
	if o.Capped != "" {
		fmt.Fprintf(out, "  a limit has no effect: %s\n", printable(o.Capped))
	}
	if o.Unread != "" {
		fmt.Fprintf(out, "  the kernel's values are not known: %s\n", printable(o.Unread))
	}
	if len(o.Values) == 0 {
		none := "kubelet has set no resource of it, and no plugin a cgroup file"
		switch {
		case diff && o.Unread != "":
			none = "nothing that is known differs from kubelet's values"
		case diff:
			none = "nothing differs from kubelet's values"
		}
		_, err := fmt.Fprintln(out, "  "+none)
		return err
	}
	t := newTable()
	t.row("", "KUBELET", "PLUGINS", "SENT", "KERNEL", "OWNER")
	const all = math.MaxInt
	for k := range o.Values { // a line for each value, with the plugin that holds; further plugins have a line each
		v := &o.Values[k]
		first, others := "-", v.Wishes
		if len(others) > 0 {
			first, others = wishText(others[0]), others[1:]
		}
		t.row(string(v.Kind)+" "+printable(v.Name), shown(v.Kubelet, all), first, shown(v.Sent, all), shown(v.Kernel, all), printable(v.Owner))
		for _, w := range others {
			t.row("", "", wishText(w), "", "", "")
		}
		if v.State != "" {
			t.note("%s: %s", v.State, v.Detail)
		}
		if v.Repairs > 0 {
			t.note("repairs: %d; it was overwritten with %q last", v.Repairs, v.Found)
		}
	}
	return t.print(out)
}

// table has values in columns, with notes between its lines that no column's width depends on.
type table struct {
	rows    *tabwriter.Writer
	written bytes.Buffer
	lines   int
	notes   map[int][]string // by the number of lines before
}

func newTable() *table {
	t := &table{notes: map[int][]string{}}
	t.rows = tabwriter.NewWriter(&t.written, 0, 0, 2, ' ', 0)
	return t
}

func (t *table) row(cells ...string) {
	fmt.Fprintf(t.rows, "  %s\n", strings.Join(cells, "\t"))
	t.lines++
}

func (t *table) note(format string, args ...any) {
	t.notes[t.lines] = append(t.notes[t.lines], printable(fmt.Sprintf(format, args...)))
}

func (t *table) print(out io.Writer) error {
	if err := t.rows.Flush(); err != nil {
		return err
	}
	n := 0
	for line := range strings.Lines(t.written.String()) {
		n++
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
		for _, note := range t.notes[n] {
			if _, err := fmt.Fprintln(out, "    "+note); err != nil {
				return err
			}
		}
	}
	return nil
}

func wishText(w explain.Wish) string {
	return fmt.Sprintf("%s by %s in %s since %s", printable(w.Value), printable(w.Plugin), printable(w.Hook), w.Since.UTC().Format(time.RFC3339))
}

// shown is a value in a cell, of which at most so many bytes are shown.
func shown(value *string, most int) string {
	switch {
	case value == nil:
		return "-"
	case *value == "":
		return `""`
	case len(*value) > most:
		return printable((*value)[:most]) + "..."
	}
	return printable(*value)
}
