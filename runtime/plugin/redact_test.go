package plugin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func TestRedactor(t *testing.T) {
	v := plugin.NewRedactor("hunter2-hunter2", "prod", "x", "443", "true", "INFO", "s3cr3t-s3cr3t and more", "s3cr3t-s3cr3t", " padded-value\n", "-----BEGIN KEY-----\nfirst-line\nsecond-line\n")
	for text, want := range map[string]string{
		"":                                   "",
		"hun":                                "hun",
		"it is hunter2-hunter2":              "it is (hidden)",
		"hunter2-hunter2hunter2-hunter2":     "(hidden)(hidden)",
		"xhunter2-hunter2x":                  "x(hidden)x",
		"hunter2-hunter":                     "hunter2-hunter",
		"prod, production, nonprod and prod": "(hidden), production, nonprod and (hidden)",
		"postgres://prod@db/prod?x=443":      "postgres://(hidden)@db/(hidden)?x=443",
		"true: INFO":                         "true: INFO",
		"s3cr3t-s3cr3t and more":             "(hidden)",
		"s3cr3t-s3cr3t and some":             "(hidden) and some",
		"padded-value":                       "(hidden)",
		"a first-line b":                     "a (hidden) b",
		"(second-line)":                      "((hidden))",
	} {
		if got := v.Text(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	if got := (*plugin.Redactor)(nil).Text("hunter2-hunter2"); got != "hunter2-hunter2" {
		t.Errorf("no redactor shows %q", got)
	}
}

// A secret with characters that are written in another way is hidden in each way.
func TestRedactorForms(t *testing.T) {
	const secret = "a\"b\\c<d>&e\tf\ng-é"
	encoded, err := json.Marshal(map[string]string{"env": secret})
	if err != nil {
		t.Fatal(err)
	}
	v := plugin.NewRedactor(secret)
	for text, want := range map[string]string{
		secret:                              "(hidden)",
		strconv.Quote(secret):               `"(hidden)"`,
		string(encoded):                     `{"env":"(hidden)"}`,
		plugin.Printable("x "+secret, 1024): "x (hidden)",
		"x a\"b\\c<d>&e\tf y":               "x (hidden) y", // its first line
	} {
		if got := v.Text(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// reading returns the adjustment of a plugin with these capabilities in an event with secrets.
func reading(has abi.CapabilitySet, secrets ...string) *plugin.Adjustment {
	return (&plugin.Member{Capabilities: has}).NewAdjustment(&subject{hook: abi.PreCreateContainer, secrets: secrets}, 2)
}

// Half a secret at the end of what is kept of a text is hidden too, wherever the cut is.
func TestSanitizedTextIsCut(t *testing.T) {
	const secret = "correct horse battery staple"
	text := "it is " + secret + ", no less"
	adj := reading(abi.AllCapabilities, secret)
	for limit := range len(text) + 10 {
		for n := 4; n <= len(secret); n++ {
			if got := adj.Sanitize(text, limit); strings.Contains(got, secret[:n]) {
				t.Fatalf("of the first %d bytes are shown %q", limit, got)
			}
		}
	}
	if got, want := adj.Sanitize(text, 100), "it is (hidden), no less"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := adj.Sanitize("so he is corr", 100), "so he is corr"; got != want {
		t.Errorf("a whole text is shown as %q, want %q", got, want)
	}
	// A short secret is shown within a longer word. Where the text is cut, the rest of the word is not known, so it is hidden.
	if got := reading(abi.AllCapabilities, "aabb").Sanitize("see_aabb and more", 8); strings.Contains(got, "aabb") {
		t.Errorf("a short secret at the cut is shown as %q", got)
	}
}

// Only what a plugin says that may read secrets is redacted.
func TestOnlyReadersOfSecretsAreRedacted(t *testing.T) {
	for has, want := range map[abi.CapabilitySet]string{
		abi.DefaultGrant():                                      "hunter2-hunter2",
		abi.CapabilitySetOf(abi.ReadRaw):                        "hunter2-hunter2",
		abi.CapabilitySetOf(abi.Env):                            "(hidden)",
		abi.CapabilitySetOf(abi.Credentials):                    "(hidden)",
		abi.AllCapabilities &^ abi.CapabilitySetOf(abi.ReadRaw): "(hidden)",
	} {
		if got := reading(has, "hunter2-hunter2").Sanitize("hunter2-hunter2", 100); got != want {
			t.Errorf("with %v it says %q, want %q", has.Names(), got, want)
		}
	}
}

// What comes to be known after the first line, or is set by the plugin itself, is hidden
// in those that follow.
func TestSecretsGrow(t *testing.T) {
	ev := &subject{hook: abi.PreCreateContainer, secrets: []string{"first-secret"}}
	adj := (&plugin.Member{Capabilities: abi.AllCapabilities}).NewAdjustment(ev, 2)
	const text = "first-secret second-secret third-secret"
	if got, want := adj.Redact(text), "(hidden) second-secret third-secret"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	ev.secrets = append(ev.secrets, "second-secret")
	if err := adj.SetEntry(abi.Container, abi.ContainerEnv, "TOKEN", "third-secret"); err != nil {
		t.Fatal(err)
	}
	if got, want := adj.Redact(text), "(hidden) (hidden) (hidden)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A variable that is set after another one was withdrawn is hidden, too.
func TestSecretsGrowAfterWithdrawal(t *testing.T) {
	adj := reading(abi.AllCapabilities)
	set := func(value string) {
		if err := adj.SetEntry(abi.Container, abi.ContainerEnv, "TOKEN", value); err != nil {
			t.Fatal(err)
		}
	}
	const text = "first-secret second-secret"
	set("first-secret")
	if got, want := adj.Redact(text), "(hidden) second-secret"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if gone, err := adj.Withdraw(abi.Container, abi.ContainerEnv, "TOKEN"); err != nil || gone != 1 {
		t.Fatalf("%d withdrawn, %v", gone, err)
	}
	set("second-secret")
	if got, want := adj.Redact(text), "(hidden) (hidden)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Of keys and errors, which may have megabytes, as much is said as can be searched in
// little time. Half a secret where that ends is hidden.
func TestWhatIsHiddenInIsCut(t *testing.T) {
	adj := reading(abi.AllCapabilities, "hunter2-hunter2")
	if got := adj.Redact("x" + strings.Repeat(" hunter2-hunter2", 1<<16)); len(got) > 16<<10 || strings.Contains(got, "hunt") {
		t.Errorf("%d bytes are shown, which end with %q", len(got), got[len(got)-20:])
	}
}

// An error is the same to who asks what it is, in other words.
func TestErrorsAreHidden(t *testing.T) {
	const secret = "hunter2-hunter2"
	leaks := func(err error) function {
		return func(context.Context, plugin.Event, *plugin.Adjustment) error { return err }
	}
	for _, test := range []struct {
		err error
		is  func(error) bool
	}{
		{fmt.Errorf("%s: %w", secret, plugin.ErrAway), func(err error) bool { return errors.Is(err, plugin.ErrAway) }},
		{fmt.Errorf("%s: %w", secret, abi.Denied), func(err error) bool { return errors.Is(err, abi.Denied) }},
		{fmt.Errorf("%s: %w", secret, &plugin.TimeError{Of: "its time"}), func(err error) bool { return errors.As(err, new(*plugin.TimeError)) }},
		{&plugin.Rejection{Code: abi.RejectPermissionDenied, Reason: secret}, func(err error) bool {
			var r *plugin.Rejection
			return errors.As(err, &r) && r.Code == abi.RejectPermissionDenied
		}},
		{&plugin.WriteError{Target: secret, Errno: abi.Invalid}, func(err error) bool { return errors.As(err, new(*plugin.WriteError)) }},
	} {
		log, err := dispatchSecret(t, secret, member("10-a", plugin.Fail, leaks(test.err)))
		if err == nil || strings.Contains(err.Error()+log, secret) || !strings.Contains(err.Error(), "(hidden)") || !test.is(err) {
			t.Errorf("%T is answered as %v; log:\n%s", test.err, err, log)
		}
		if log, _ = dispatchSecret(t, secret, member("10-a", plugin.Ignore, leaks(test.err))); strings.Contains(log, secret) {
			t.Errorf("%T is logged:\n%s", test.err, log)
		}
	}
}

// Plugins that panic, disagree or are only tried say no secrets.
func TestChainSaysNoSecrets(t *testing.T) {
	const secret = "hunter2-hunter2"
	set := func(key, value string) function {
		return func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetEntry(abi.Container, abi.ContainerAnnotations, key, value)
		}
	}
	panics := function(func(context.Context, plugin.Event, *plugin.Adjustment) error { panic("it was " + secret) })
	for name, members := range map[string][]plugin.Member{
		"panic":    {member("10-a", plugin.Fail, panics)},
		"changes":  {member("10-a", plugin.Fail, set(secret, secret)), member("20-b", plugin.Fail, set("long", strings.Repeat("x", 1020)+secret))},
		"conflict": {member("10-a", plugin.Fail, set(secret, "1")), member("20-b", plugin.Fail, set(secret, "2"))},
		"ignored":  {member("10-a", plugin.Fail, set(secret, "1")), member("20-b", plugin.Ignore, set(secret, "2"))},
	} {
		log, err := dispatchSecret(t, secret, members...)
		if strings.Contains(fmt.Sprint(err)+log, secret[:4]) || !strings.Contains(log, "(hidden)") {
			t.Errorf("%s: error %v; log:\n%s", name, err, log)
		}
	}
}

// dispatchSecret runs the members in an event with a secret.
func dispatchSecret(t *testing.T, secret string, members ...plugin.Member) (log string, err error) {
	t.Helper()
	var text bytes.Buffer
	logger := slogsink.New(slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	s := &subject{hook: abi.PreCreateContainer, secrets: []string{secret}}
	_, err = plugin.NewChain(logger, 2, members...).Dispatch(t.Context(), nil, s)
	return text.String(), err
}

// TestRedactorFindsTheLongest compares a Redactor of many secrets that begin alike with a look at each of
// them at each place.
func TestRedactorFindsTheLongest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "aaab"[random.IntN(4)]
		}
		return string(b)
	}
	hidden := 0
	for range 2000 {
		var secrets []string
		for range 1 + random.IntN(12) {
			secrets = append(secrets, word(8+random.IntN(8)))
		}
		text := word(60)
		want := ""
		for at := 0; at < len(text); {
			longest := ""
			for _, s := range secrets {
				if strings.HasPrefix(text[at:], s) && len(s) > len(longest) {
					longest = s
				}
			}
			if longest == "" {
				want += text[at : at+1]
				at++
				continue
			}
			want += "(hidden)"
			at += len(longest)
			hidden++
		}
		if got := plugin.NewRedactor(secrets...).Text(text); got != want {
			t.Fatalf("%q in %q is shown as %q, want %q", secrets, text, got, want)
		}
	}
	if hidden < 1000 {
		t.Errorf("%d secrets were in the texts", hidden)
	}
}

// Secrets that were made to be searched for long hide more than themselves.
func TestRedactorHasAnEnd(t *testing.T) {
	var nested []string
	for n := 4; n < 1000; n++ {
		nested = append(nested, strings.Repeat("a", n)+"A")
	}
	v := plugin.NewRedactor(nested...)
	if got, want := v.Text("so "+strings.Repeat("a", 999)+"b and more"), "so aaaaaaa(hidden)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := v.Text("so aaaaA and more"), "so (hidden) and more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The time of a search follows from the text's length alone, however long secrets are and however much like the text.
// Where it is over, no part of a secret is shown that follows.
func TestRedactorTakesLinearTime(t *testing.T) {
	var secrets []string
	for i := range 15 {
		secrets = append(secrets, strings.Repeat("a", 64<<10+i<<10)+"!")
	}
	v := plugin.NewRedactor(append(secrets, "hunter2-hunter2")...)
	start := time.Now()
	got := v.Text("hunter2-hunter2 " + strings.Repeat("a", 1<<20) + " hunter2-hunter2")
	if took := time.Since(start); took > 30*time.Second { // it took minutes
		t.Errorf("1 MiB took %v", took)
	}
	if !strings.HasPrefix(got, "(hidden) a") || !strings.HasSuffix(got, "a(hidden)") {
		t.Errorf("%d bytes are shown, from %.20q to %q", len(got), got, got[len(got)-20:])
	}
}
