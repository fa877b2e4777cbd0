package recording

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// called is an event whose container has these secrets.
type called struct {
	plugin.NoEvent
	secrets []string
}

func (called) Hook() abi.Hook { return abi.PreCreateContainer }

func (c called) Secrets(abi.CapabilitySet, int) ([]string, int) { return c.secrets, 1 }

// play has the recorder watch one call with these questions.
func play(r *Recorder, ev plugin.Event, asked ...plugin.Question) {
	member := plugin.Member{Capabilities: abi.AllCapabilities}
	c := r.Begin(ev, member.NewAdjustment(ev, 2))
	for i := range asked {
		c.Answered(&asked[i])
	}
	c.End(nil)
}

// written is what the recorder writes until the end of its time.
func written(t *testing.T, r *Recorder) string {
	t.Helper()
	r.options.For = time.Nanosecond
	var out bytes.Buffer
	if err := r.Write(t.Context(), &out, Header{Plugin: "x"}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// A call that has ended before the proxy stops is recorded.
func TestStopLosesNoCall(t *testing.T) {
	r := NewRecorder(DefaultOptions())
	play(r, called{})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out bytes.Buffer
	if err := r.Write(ctx, &out, Header{Plugin: "x"}); err != nil {
		t.Fatal(err)
	}
	rec, err := Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	if len(rec.Calls) != 1 || rec.End.Reason != EndStopped || rec.End.Calls != 1 {
		t.Errorf("it has %d calls, and the last line is %+v", len(rec.Calls), rec.End)
	}
}

func textArg(s string) plugin.Arg { return plugin.Arg{Text: s, IsText: true} }

// asks is a question on a field with its answer.
func asks(t *testing.T, name string, o abi.Object, f abi.Field, answer string, more ...plugin.Arg) plugin.Question {
	args := append([]plugin.Arg{{Number: int64(o)}, {Number: int64(f)}}, more...)
	q := plugin.Question{Function: function(t, name), Kind: o, Args: args}
	if answer != "" {
		q.Data = []byte(answer)
	}
	return q
}

// A variable that the plugin itself sets is a secret, too: its value is in no other question or answer of the call.
func TestOwnVariableIsHidden(t *testing.T) {
	const secret = "s3cr3t-value"
	kept := plugin.Question{Function: function(t, "kv_get"), Args: []plugin.Arg{textArg("token")}, Data: []byte(secret)}
	r := NewRecorder(DefaultOptions())
	play(r, called{}, kept,
		asks(t, "map_set", abi.Container, abi.ContainerEnv, "", textArg("TOKEN"), textArg(secret)),
		asks(t, "map_set", abi.Container, abi.ContainerAnnotations, "", textArg("a"), textArg("is "+secret)),
	)
	if text := written(t, r); strings.Contains(text, secret) || !strings.Contains(text, "is (hidden)") {
		t.Errorf("the recording is\n%s", text)
	}
}

// What a pod is called is no secret since a plugin gives it to a variable.
func TestOwnVariableHidesNoFields(t *testing.T) {
	r := NewRecorder(DefaultOptions())
	play(r, called{},
		asks(t, "get", abi.Pod, abi.PodName, "web-frontend"),
		asks(t, "map_set", abi.Container, abi.ContainerEnv, "", textArg("POD"), textArg("web-frontend")),
	)
	if text := written(t, r); !strings.Contains(text, `"is":"web-frontend"`) {
		t.Errorf("the recording is\n%s", text)
	}
}

// What waits for a reader that reads nothing is bounded, the secrets of calls included. A call that waits alone is kept,
// however large the environments are that it has seen.
func TestWaitingSecretsAreBounded(t *testing.T) {
	options := DefaultOptions()
	options.Rate = MaxRate
	r := NewRecorder(options)
	for range maxWaitingCalls {
		play(r, called{secrets: []string{strings.Repeat("x", 64<<10)}})
	}
	held := 0
	for len(r.calls) > 0 {
		for _, s := range (<-r.calls).secrets {
			held += len(s)
		}
	}
	if held > maxWaiting {
		t.Errorf("%d KiB of secrets wait, of %d KiB in all", held>>10, maxWaiting>>10)
	}

	r = NewRecorder(options)
	for range 2 {
		play(r, called{secrets: []string{strings.Repeat("x", 2*maxWaiting)}})
	}
	if got, late := len(r.calls), r.Dropped().Reader; got != 1 || late != 1 {
		t.Errorf("%d calls wait, and %d were left out, want one and one", got, late)
	}
}

// A guest that asks for the length of an answer first, and then for the answer, is answered once in the recording, and
// the answer counts once.
func TestAskedAgainCountsOnce(t *testing.T) {
	r := NewRecorder(DefaultOptions()) // --max-call is 64 KiB
	again := asks(t, "map_get", abi.Pod, abi.PodAnnotations, strings.Repeat("x", 40<<10), textArg("a"))
	play(r, called{}, again, again)
	play(r, called{}, again, asks(t, "map_get", abi.Pod, abi.PodAnnotations, strings.Repeat("y", 40<<10), textArg("b")))
	if got, large := len(r.calls), r.Dropped().Size; got != 1 || large != 1 {
		t.Errorf("%d calls wait, and %d were left out, want that of 40 KiB and that of 80", got, large)
	}
}

// What is left out of an annotation is marked, as docs/changing-plugins.md says: in a map whose keys are sorted, and in one
// whose keys are not.
func TestLastAppliedIsMarked(t *testing.T) {
	for _, keys := range [][]string{{lastApplied}, {lastApplied, "a"}} {
		annotations := abi.AppendEntries(nil, func(yield func(k, v string) bool) {
			for _, key := range keys {
				yield(key, "whole manifest")
			}
		})
		a := Spell(asks(t, "map_dump", abi.Pod, abi.PodAnnotations, string(annotations)), false, nil)
		if text, err := a.MarshalJSON(); err != nil || !a.Hidden || !bytes.Contains(text, []byte(plugin.Redacted)) {
			t.Errorf("%s, %v: hidden is %t", text, err, a.Hidden)
		}
	}
}
