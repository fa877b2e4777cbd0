package main

import (
	"cmp"
	"fmt"
	"io"
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
	if len(o.Values) == 0 {
		if diff {
			fmt.Fprintln(out, "  nothing differs from kubelet's values")
		} else {
			fmt.Fprintln(out, "  kubelet has set no resource of it, and no plugin a cgroup file")
		}
		return nil
	}
	if o.Unread != "" {
		fmt.Fprintf(out, "  the kernel's values are not known: %s\n", printable(o.Unread))
	}
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.row("", "KUBELET", "PLUGINS", "SENT", "KERNEL", "OWNER")
	for k := range o.Values {
		t.value(&o.Values[k])
	}
	return t.Flush()
}

// table writes values in columns.
type table struct{ *tabwriter.Writer }

func (t table) row(name string, cells ...string) {
	fmt.Fprintf(t, "  %s", name)
	for _, c := range cells {
		fmt.Fprintf(t, "\t%s", c)
	}
	fmt.Fprintln(t)
}

// value writes a line for a value, with the plugin that holds. Further plugins have a line each,
// and so has what is wrong.
func (t table) value(v *explain.Value) {
	wishes := make([]string, 0, 1)
	for _, w := range v.Wishes {
		wishes = append(wishes, wishText(w))
	}
	first := "-"
	if len(wishes) > 0 {
		first, wishes = wishes[0], wishes[1:]
	}
	t.row(string(v.Kind)+" "+printable(v.Name), shown(v.Kubelet), first, shown(v.Sent), shown(v.Kernel), printable(v.Owner))
	for _, w := range wishes {
		t.row("", "", w, "", "", "")
	}
	if v.State != "" {
		t.note("%s: %s", v.State, v.Detail)
	}
	if v.Repairs > 0 {
		t.note("repaired %d times; it was overwritten with %q last", v.Repairs, v.Found)
	}
}

// note writes a line that no column's width depends on.
func (t table) note(format string, args ...any) {
	fmt.Fprintf(t, "    %s\n", printable(fmt.Sprintf(format, args...)))
}

func wishText(w explain.Wish) string {
	return fmt.Sprintf("%s by %s in %s since %s", printable(w.Value), printable(w.Plugin), printable(w.Hook), w.Since.UTC().Format(time.RFC3339))
}

// shown is a value in a cell.
func shown(value *string) string {
	switch {
	case value == nil:
		return "-"
	case *value == "":
		return `""`
	}
	return printable(*value)
}
