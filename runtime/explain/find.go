package explain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The kinds of errors of Find and Check.
var (
	ErrNotFound  = errors.New("not found")
	ErrAmbiguous = errors.New("ambiguous")
	ErrInvalid   = errors.New("invalid")
)

// Error is an error of Find or Check, for people.
type Error struct {
	Kind error // one of those above
	Text string
}

func (e *Error) Error() string { return e.Text }
func (e *Error) Unwrap() error { return e.Kind }

// Name names a pod, or a container of it.
type Name struct{ Namespace, Pod, Container string }

// String is the form that Find takes.
func (n Name) String() string {
	return strings.TrimSuffix(n.Namespace+"/"+n.Pod+"/"+n.Container, "/")
}

// Form is what Find takes, for usage texts.
const Form = "[NAMESPACE/]POD[/CONTAINER]"

// Check returns an *Error if the text is not of this form.
func Check(text string) error {
	if parts := strings.Split(text, "/"); len(parts) > 3 || slices.Contains(parts, "") {
		return &Error{ErrInvalid, fmt.Sprintf("%q is not of the form %s", text, Form)}
	}
	return nil
}

// Find returns the one pod or container that text means, among these names; a name in full means
// itself, whatever else it may be short for. The container of the result is empty if text means a
// whole pod. The error is an *Error.
func Find(among []Name, text string) (Name, error) {
	if err := Check(text); err != nil {
		return Name{}, err
	}
	parts := strings.Split(text, "/")
	var meant []Name
	for _, n := range among {
		for _, m := range []Name{{n.Namespace, n.Pod, ""}, n} {
			if text == m.String() {
				return m, nil
			}
			own := []string{m.Pod, m.Container}
			if m.Container == "" {
				own = own[:1]
			}
			means := slices.Equal(parts, own) || slices.Equal(parts, append([]string{m.Namespace}, own...))
			if means && !slices.Contains(meant, m) {
				meant = append(meant, m)
			}
		}
	}
	switch len(meant) {
	case 1:
		return meant[0], nil
	case 0:
		return Name{}, &Error{ErrNotFound, fmt.Sprintf("%q: there is no such pod or container%s", text, near(among, text))}
	}
	return Name{}, &Error{ErrAmbiguous, fmt.Sprintf("%q can be any of %s: name one in full", text, list(meant))}
}

// maxListed is how many names an error lists.
const maxListed = 8

func list(names []Name) string {
	texts := make([]string, 0, len(names))
	for _, n := range names {
		texts = append(texts, n.String())
	}
	slices.Sort(texts)
	if more := len(texts) - maxListed; more > 0 {
		texts = append(texts[:maxListed], fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

// near says which names are like the text.
func near(among []Name, text string) string {
	if len(among) == 0 {
		return "; the proxy knows of no pod"
	}
	type candidate struct {
		Name
		distance int
	}
	var like []candidate
	for _, n := range among {
		best := len(text)
		for _, form := range []string{n.Pod, n.Namespace + "/" + n.Pod, n.Pod + "/" + n.Container, n.String()} {
			d := distance(text, form)
			if strings.Contains(form, text) || strings.Contains(text, n.Pod) {
				d = min(d, 1)
			}
			best = min(best, d)
		}
		if best <= 1+len(text)/5 {
			like = append(like, candidate{n, best})
		}
	}
	if len(like) == 0 {
		return ""
	}
	slices.SortFunc(like, func(a, b candidate) int {
		return cmp.Or(a.distance-b.distance, strings.Compare(a.String(), b.String()))
	})
	like = slices.Compact(like) // there can be two pods of one name
	names := make([]Name, 0, len(like))
	for _, c := range like[:min(len(like), maxListed)] {
		names = append(names, c.Name)
	}
	return "; names like it: " + list(names)
}

// distance is how many bytes have to be put in, taken out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for k := range row {
		row[k] = k
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for k := range len(b) {
			replaced := diagonal
			if a[i] != b[k] {
				replaced++
			}
			diagonal = row[k+1]
			row[k+1] = min(replaced, row[k]+1, row[k+1]+1)
		}
	}
	return row[len(b)]
}
