package enforce

import (
	"strings"
	"testing"
	"time"
)

// numbers is a kernel that takes every value but "fits", in whose place it has "fit", and shows what it has.
type numbers struct{ used string }

func (numbers) Exact(_, known string) string     { return known }
func (numbers) Holds(_, value, held string) bool { return value == held }
func (numbers) Fit(_, value string) string       { return strings.Replace(value, "fits", "fit", 1) }
func (k numbers) FitUndo(_, value string) string { return value + k.used }

// TestDecide is what is done about a file: by what kubelet and plugins want, what the host wrote last, what the file shows,
// and why it is looked at.
func TestDecide(t *testing.T) {
	kubelets := func(text string) *string { return &text }
	wish := func(values ...string) (all []Wish) {
		for _, value := range values {
			all = append(all, Wish{Plugin: "p" + value, Value: value})
		}
		return all
	}
	stuck := &Failure{Reason: "busy", held: "1", noRetry: true}
	fights := Drift{row: fightAfter, repaired: time.Now()}
	for _, c := range []struct {
		what          string
		record        Value
		shows         string // "-": the file cannot be read
		why           Why
		kernel        numbers
		write         string // kind, value and plugin; "": nothing is written
		kubelet, last string // of the record from then on; "": not known
	}{
		{"nothing is wanted", Value{}, "1", Called, numbers{}, "", "", ""},
		{"the first wish holds", Value{Wishes: wish("5", "6")}, "1", Called, numbers{}, "first 5 of p5", "1", ""},
		{"it is there already", Value{Wishes: wish("5")}, "5", Called, numbers{}, "", "5", ""},
		{"a scan finds a wish that was not written", Value{Wishes: wish("5")}, "1", Scan, numbers{}, "first 5 of p5", "1", ""},
		{"a file that cannot be read, after a call", Value{Wishes: wish("5")}, "-", Called, numbers{}, "first 5 of p5", "", ""},
		{"and in a scan", Value{Wishes: wish("5")}, "-", Scan, numbers{}, "", "", ""},
		{"the pod has no sandbox", Value{Wishes: wish("5")}, "1", Vacant, numbers{}, "", "", ""},
		{"the kernel has another form of it", Value{Wishes: wish("fits")}, "fit", Called, numbers{}, "", "fit", ""},
		{"it was written", Value{Wishes: wish("5"), Kubelet: kubelets("1"), Last: "5", Read: "5"}, "5", Scan, numbers{}, "", "1", "5"},
		{"and was read back in another form", Value{Wishes: wish("5"), Kubelet: kubelets("1"), Last: "5", Read: "4"}, "4", Scan, numbers{}, "", "1", "5"},
		{"and the proxy was killed", Value{Wishes: wish("5"), Kubelet: kubelets("1"), Writing: "5"}, "5", Scan, numbers{}, "", "1", "5"},
		{"or killed before it was written", Value{Wishes: wish("5"), Kubelet: kubelets("1"), Writing: "5"}, "1", Scan, numbers{}, "repair 5 of p5", "1", ""},
		{"the plugin wants another one", Value{Wishes: wish("6"), Kubelet: kubelets("1"), Last: "5", Read: "5"}, "5", Called, numbers{}, "first 6 of p6", "1", "5"},
		{"kubelet writes", Value{Wishes: wish("5"), Kubelet: kubelets("1"), Last: "5", Read: "5"}, "2", Called, numbers{}, "repair 5 of p5", "2", "5"},
		{"something writes for the sixth time", Value{Wishes: wish("5"), Kubelet: kubelets("1"), Last: "5", Read: "5", Drift: fights}, "2", Scan, numbers{}, "fight 5 of p5", "2", "5"},
		{"a call writes for the sixth time", Value{Wishes: wish("5"), Kubelet: kubelets("1"), Last: "5", Read: "5", Drift: fights}, "2", Called, numbers{}, "repair 5 of p5", "2", "5"},
		{"it is fought over", Value{Wishes: wish("5"), Kubelet: kubelets("2"), Last: "5", Read: "5", Drift: Drift{Fight: true}}, "2", Scan, numbers{}, "", "2", "5"},
		{"it was refused", Value{Wishes: wish("5"), Kubelet: kubelets("1"), Failed: stuck}, "1", Called, numbers{}, "", "1", ""},
		{"a scan tries again", Value{Wishes: wish("5"), Kubelet: kubelets("1"), Failed: stuck}, "1", Scan, numbers{}, "first 5 of p5", "1", ""},
		{"the file has changed since", Value{Wishes: wish("5"), Kubelet: kubelets("1"), Failed: stuck}, "2", Called, numbers{}, "first 5 of p5", "2", ""},
		{"no plugin wants it any more", Value{Kubelet: kubelets("1"), Last: "5", Read: "5"}, "5", Called, numbers{}, "undo 1 of ", "1", "5"},
		{"also without a sandbox", Value{Kubelet: kubelets("1"), Last: "5", Read: "5"}, "5", Vacant, numbers{}, "undo 1 of ", "1", "5"},
		{"kubelet has written meanwhile", Value{Kubelet: kubelets("1"), Last: "5", Read: "5"}, "2", Called, numbers{}, "", "2", ""},
		{"kubelet's value is there", Value{Kubelet: kubelets("1"), Last: "5", Read: "5"}, "1", Scan, numbers{}, "", "1", "1"},
		{"more is in use than kubelet's value", Value{Kubelet: kubelets("1"), Last: "5", Read: "5"}, "5", Called, numbers{"00"}, "undo 100 of ", "1", "5"},
		{"as much is in use as the file shows", Value{Kubelet: kubelets("1"), Last: "100", Read: "100"}, "100", Scan, numbers{"00"}, "", "1", "100"},
	} {
		before := c.record
		w, next, _ := c.record.decide("f", c.shows, c.shows != "-", c.why, c.kernel)
		write, kubelet := "", ""
		if kind := []string{"", "first", "repair", "undo", "fight"}[w.Kind]; kind != "" {
			write = kind + " " + w.Value + " of " + w.Plugin
		}
		if next.Kubelet != nil {
			kubelet = *next.Kubelet
		}
		if write != c.write || kubelet != c.kubelet || next.Last != c.last {
			t.Errorf("%s: %q, kubelet's is %q, and last was %q; want %q, %q, %q", c.what, write, kubelet, next.Last, c.write, c.kubelet, c.last)
		}
		if before.Last != c.record.Last || before.Kubelet != c.record.Kubelet || before.Drift != c.record.Drift {
			t.Errorf("%s: the record is no longer as it was: %+v", c.what, c.record)
		}
	}
}
