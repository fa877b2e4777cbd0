package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// printResult writes what came of an event, for people.
func printResult(out io.Writer, res simulate.Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "plugin\t%s %s\n", res.Manifest.Name, res.Manifest.Version)
	fmt.Fprintf(w, "event\t%s\n", printable(res.Title))
	fmt.Fprintf(w, "outcome\t%s\n", printable(verdict(res)))
	if res.Called {
		fmt.Fprintf(w, "cost\t%d fuel, %d host calls, %v\n", res.Fuel, res.HostCalls, res.Took.Round(time.Microsecond))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	var text strings.Builder
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&text, "\n%s\n  %s\n", printable(title), indented("  ", lines))
		}
	}
	if res.Sent != nil {
		section("request "+name(res.Request), texts(res.Changes(), simulate.Difference.String))
	}
	for _, u := range res.Updates {
		section("other container "+u.GetContainerId()+": "+name(u), texts(res.Fields(u), simulate.Difference.String))
	}
	section("cgroup files", texts(res.Writes, simulate.Write.String))
	section("log", res.Lines)
	section("metrics", texts(slices.Sorted(maps.Keys(res.Metrics)), func(name string) string {
		return fmt.Sprintf("%s %d", name, res.Metrics[name])
	}))
	changed := changedValues(res)
	section("key-value state", texts(slices.Sorted(maps.Keys(changed)), func(key string) string {
		if value := changed[key]; value != nil {
			return fmt.Sprintf("%q: %q", key, *value)
		}
		return fmt.Sprintf("%q is deleted", key)
	}))
	section("refused by the host", res.Refused)
	if rights := res.Rights; rights.Lacks() != 0 {
		res.Remarks = append(res.Remarks, fmt.Sprintf("the plugin declares %s, which is not granted: %s", strings.Join(rights.Lacks().Names(), ", "), rights.Remedy()))
	}
	section("notes", res.Remarks)
	_, err := io.WriteString(out, text.String())
	return err
}

// changedValues has what the call has changed of the key-value state, by key. The value of a key that it has deleted is nil.
func changedValues(res simulate.Result) map[string]*string {
	changed := map[string]*string{}
	for key, value := range res.KV {
		if before, had := res.KVBefore[key]; !had || before != value {
			changed[key] = &value
		}
	}
	for key := range res.KVBefore {
		if _, has := res.KV[key]; !has {
			changed[key] = nil
		}
	}
	return changed
}

func name(m proto.Message) string { return string(m.ProtoReflect().Descriptor().Name()) }

func verdict(res simulate.Result) string {
	switch {
	case res.Rejection != nil:
		return fmt.Sprintf("refused with code %d: %s", res.Rejection.Code, res.Rejection.Reason)
	case res.Err != nil:
		text := "failed: " + whyFailed(res.Err)
		switch {
		case res.Request == nil: // there is no call
			return text
		case res.Answer != nil:
			return fmt.Sprintf("%s; the call fails (failure-policy %v)", text, res.Policy)
		}
		return fmt.Sprintf("%s; the call proceeds without it (failure-policy %v)", text, res.Policy)
	case !res.Called:
		return "not called: its match does not select this pod or container"
	case res.Answer != nil:
		return "the call fails: " + res.Answer.Error()
	case res.Sent == nil:
		return "done"
	case !proto.Equal(res.Request, res.Sent):
		return "the call proceeds with changes"
	}
	var others []string
	if len(res.Writes) > 0 {
		others = append(others, "cgroup files")
	}
	if len(res.Updates) > 0 {
		others = append(others, "other containers")
	}
	if len(others) == 0 {
		return "the call proceeds unchanged"
	}
	return "the call proceeds unchanged; " + strings.Join(others, " and ") + " change"
}

// whyFailed is the text of an error to be put after "failed: ", with which the reason that
// a guest gave begins.
func whyFailed(err error) string { return strings.TrimPrefix(err.Error(), "failed: ") }
