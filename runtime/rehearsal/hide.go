package rehearsal

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

const (
	hidden = "(hidden)"
	// shortestSecret is in bytes. Shorter values, such as 1 or yes, are in too many texts.
	shortestSecret = 4
)

// Hide returns the result without the values of environment variables and of registry
// credentials, and without them in what the plugin said, which may have read them.
func (res Result) Hide() Result {
	v := veilOf(append(secretsOf(res.Request, res.Sent), res.secrets...))
	res.veil = v
	res.Err, res.Answer = v.err(res.Err), v.err(res.Answer)
	if r := res.Rejection; r != nil {
		res.Rejection = &plugin.Rejection{Code: r.Code, Reason: v.text(r.Reason)}
	}
	res.Lines = slices.Clone(res.Lines)
	for i := range res.Lines {
		res.Lines[i].Text = v.text(res.Lines[i].Text)
	}
	res.Metrics = slices.Clone(res.Metrics)
	for i := range res.Metrics {
		res.Metrics[i].Name = v.text(res.Metrics[i].Name)
	}
	res.Refused, res.Remarks = v.texts(res.Refused), v.texts(res.Remarks)
	res.KV, res.KVBefore = v.entries(res.KV), v.entries(res.KVBefore)
	return res
}

// Changes returns how the request that the backend got differs from that which came.
func (res Result) Changes() []Difference {
	if res.Sent == nil {
		return nil
	}
	return res.veil.differences(Diff(res.Request, res.Sent))
}

// Fields returns what an update of another container sets.
func (res Result) Fields(u *runtimeapi.UpdateContainerResourcesRequest) []Difference {
	return res.veil.differences(Fields(u))
}

// veil puts something else in the place of secrets; a nil one shows them.
type veil struct{ *strings.Replacer }

func (v *veil) text(s string) string { return v.Replace(s) }

func (v *veil) texts(all []string) []string {
	var out []string
	for _, s := range all {
		out = append(out, v.text(s))
	}
	return out
}

func (v *veil) entries(all map[string]string) map[string]string {
	out := map[string]string{}
	for k, value := range all {
		out[v.text(k)] = v.text(value)
	}
	return out
}

// err is the same error in other words, if it has a secret in it.
func (v *veil) err(err error) error {
	if err == nil || v.text(err.Error()) == err.Error() {
		return err
	}
	return errors.New(v.text(err.Error()))
}

func (v *veil) differences(all []Difference) []Difference {
	if v == nil {
		return all
	}
	for i, d := range all {
		switch {
		case d.Secret:
			all[i].Before, all[i].After = hidden, hidden
		case strings.HasPrefix(d.Before+d.After, `"`): // a text
			all[i].Before, all[i].After = v.text(d.Before), v.text(d.After)
		}
	}
	return all
}

// veilOf hides these texts in every form in which they are printed.
func veilOf(secrets []string) *veil {
	forms := map[string]bool{}
	for _, s := range secrets {
		quoted := strconv.Quote(s)
		for _, form := range append(strings.Split(s, "\n"), s, quoted[1:len(quoted)-1], plugin.Printable(s, len(s))) {
			forms[form] = len(form) >= shortestSecret
		}
	}
	var pairs []string
	for _, form := range slices.SortedFunc(maps.Keys(forms), func(a, b string) int { return len(b) - len(a) }) {
		if forms[form] { // the longest first, which may have others in it
			pairs = append(pairs, form, hidden)
		}
	}
	return &veil{strings.NewReplacer(pairs...)}
}

// secretsOf are the values of environment variables and credentials in the messages.
func secretsOf(messages ...proto.Message) []string {
	var secrets []string
	for _, m := range messages {
		if m == nil {
			continue
		}
		for _, l := range flatten(m).values {
			if text, err := strconv.Unquote(l.text); err == nil && l.secret {
				secrets = append(secrets, text)
			}
		}
	}
	return secrets
}
