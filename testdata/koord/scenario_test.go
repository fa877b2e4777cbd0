package koord_test

import (
	"errors"
	"regexp"
	"testing"
)

// A scenario is a way to see whether a proxy has a fault.
type scenario struct {
	// run sets a node up, does what brings the fault out, and returns what is
	// wrong; nil if nothing is. It ends the test if it cannot come so far.
	run func(*node) error
	// incumbent is what koord-runtime-proxy does wrong, as a regular expression
	// of what run returns.
	incumbent string
	// alone says that nothing else may run meanwhile: a promise of milliseconds is held.
	alone bool
}

// test wants that wasmproxy does not have the fault, and that the incumbent has.
func (s scenario) test(t *testing.T) {
	t.Helper()
	s.parallel(t)
	t.Run(string(wasmproxy), func(t *testing.T) {
		s.parallel(t)
		n := newNode(t, wasmproxy)
		if err := errors.Join(s.run(n), n.sick()); err != nil {
			t.Error(err)
		}
	})
	t.Run(string(koordRuntimeProxy), func(t *testing.T) {
		s.parallel(t)
		n := newNode(t, koordRuntimeProxy)
		switch err := s.run(n); {
		case err == nil:
			t.Errorf("nothing is wrong, want %q: this test proves nothing", s.incumbent)
		case !regexp.MustCompile(s.incumbent).MatchString(err.Error()):
			t.Errorf("%v\nwant %q; its log ends:\n%s", err, s.incumbent, n.process.LastWords())
		default:
			t.Logf("as it is known: %v", err)
		}
	})
}

func (s scenario) parallel(t *testing.T) {
	if !s.alone {
		t.Parallel()
	}
}

// tests runs scenarios by name.
func tests(t *testing.T, all map[string]scenario) {
	t.Helper()
	t.Parallel()
	for name, s := range all {
		t.Run(name, s.test)
	}
}
