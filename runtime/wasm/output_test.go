package wasm

import (
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// newOutput returns the call of a hook of a plugin that may read the secret.
func newOutput(t *testing.T, log *record) *call {
	ev := newEvent()
	ev.maps[slot{abi.Container, abi.ContainerEnv}]["PASSWORD"] = secret
	return &call{
		of: &guests{options: PluginOptions{Observer: log.logger()}}, event: ev, output: output{budget: maxOutput},
		adj: (&plugin.Member{Capabilities: abi.CapabilitySetOf(abi.Env)}).NewAdjustment(ev, 0),
	}
}

// A secret is hidden wherever a guest begins to print it, and however often it is
// interrupted; what stands where the output is cut too.
func TestPrintedSecrets(t *testing.T) {
	for at := maxLine - 2*len(secret); at < maxLine+8; at++ {
		var logged record
		o := newOutput(t, &logged)
		for b := range strings.SplitSeq(strings.Repeat("x", at)+secret+" and more\nnext line\n", "") {
			o.write(t.Context(), 1, []byte(b))
		}
		o.finish(t.Context())
		if got := logged.String() + o.output.printed(); strings.Contains(got, secret[:4]) || strings.Contains(got, secret[len(secret)-4:]) {
			t.Fatalf("after %d letters it is logged as %.300q", at, got[strings.Index(got, "xx")+at-40:])
		}
		if got := logged.String(); !strings.Contains(got, "text=\"next line\"") || strings.Count(got, "msg=\"plugin log\"") != 2 {
			t.Fatalf("got %.300q, want two lines", got)
		}
	}
}

// Of what is printed when no more is logged, the error has the last lines, and none of
// which the beginning is not known.
func TestPrintedSecretsBeyondTheBound(t *testing.T) {
	const most = tailLines * maxTail
	for kept := range len(secret) + 1 {
		o := newOutput(t, &record{})
		o.write(t.Context(), 0, []byte("begun "+secret[:len(secret)/2]))
		o.output.full = true
		line := secret + strings.Repeat("x", most-kept-len("\nreason\n")) + "\nreason\n"
		o.write(t.Context(), 0, []byte(strings.Repeat("y", most)+line))
		o.finish(t.Context())
		if got, want := o.output.printed(), " (it printed: reason)"; got != want {
			t.Fatalf("with %d bytes of the secret got %.300q, want %q", kept, got, want)
		}
	}
}

// namedBefore has a metric of this name.
func namedBefore(name string) *plugin.Metrics {
	m := plugin.NewMetrics()
	m.Update(abi.MetricAdd, name, 1)
	return m
}

// A metric is named without secrets.
func TestMetricsHaveNoSecrets(t *testing.T) {
	ev := newEvent()
	ev.maps[slot{abi.Container, abi.ContainerEnv}]["PASSWORD"] = secret
	m := plugin.NewMetrics()
	c := newCaller(t, ev, PluginOptions{Granted: abi.AllCapabilities, Metrics: m})
	for range 2 {
		c.want(0, "metric", abi.MetricAdd, `seen_total{by="`+secret+`"}`, 1)
		c.want(0, "metric", abi.MetricAdd, `seen_total{by="x"}`, 1)
		c.wantErrno(abi.TooLarge, "metric", abi.MetricAdd, `seen_total{by="`+strings.Repeat(secret, 10)+`"}`, 1)
	}
	const word = "hunter2_hunter2" // it would do as a name
	ev.maps[slot{abi.Container, abi.ContainerEnv}]["PASSWORD"] = word
	for _, m := range []*plugin.Metrics{namedBefore(word), plugin.NewMetrics()} { // whatever was counted when it was no secret
		c := newCaller(t, ev, PluginOptions{Granted: abi.AllCapabilities, Metrics: m})
		c.wantErrno(abi.Invalid, "metric", abi.MetricAdd, word, 1)
	}
	all := m.All()
	if len(all) != 2 || all[0].Name != `seen_total{by="(hidden)"}` || all[0].Value != 2 || all[1].Value != 2 {
		t.Errorf("got %v", all)
	}
}
