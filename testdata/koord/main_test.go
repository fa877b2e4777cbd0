// Package koord_test holds wasmproxy against koord-runtime-proxy, in whose place
// it can be put. Each file w??_*_test.go is a fault of koord-runtime-proxy
// v1.8.0, by the numbers of README.md: wasmproxy must not have it, and where the
// incumbent can be made to show it, it must, or the test proves nothing. The
// other files hold that what plugins rely on is as it was.
//
// Both proxies run as processes, between a client as kubelet is one and a CRI
// runtime that does as it is told, with hook servers of Koordinator's own
// published types. What both proxies do on a real node is not tested here.
package koord_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/bench/incumbent"
)

// withEtc is the name under which the tests start themselves again, to become
// a program with an /etc of its own: withetc DIRECTORY PROGRAM [ARGUMENT...].
const withEtc = "withetc"

// programs are what the tests run. TestMain builds them.
var programs struct {
	self      string // the tests
	wasmproxy string
	raced     string // wasmproxy with the race detector, which every test runs that does not measure
	incumbent string // koord-runtime-proxy
	koordlet  string // ./koordlet
	burst     string // ./koordlet/burst
}

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == withEtc {
		fmt.Fprintln(os.Stderr, incumbent.ExecWithEtc(os.Args[2], os.Args[3:]))
		os.Exit(1)
	}
	if err := buildPrograms(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "koord:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func buildPrograms(ctx context.Context) (err error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	cache, err := filepath.Abs(cmp.Or(os.Getenv("WASMPROXY_CACHE"), filepath.Join(root, ".cache")))
	if err != nil {
		return err
	}
	if programs.self, err = os.Executable(); err != nil {
		return err
	}
	koord, err := incumbent.Build(ctx, root, filepath.Join(cache, "bench")) // where the benchmark keeps it too
	if err != nil {
		return err
	}
	programs.incumbent = koord.Proxy
	programs.wasmproxy, programs.raced = filepath.Join(cache, "koord", "wasmproxy"), filepath.Join(cache, "koord", "wasmproxy-race")
	if err := incumbent.GoBuild(ctx, root, programs.wasmproxy, "./cmd/wasmproxy"); err != nil {
		return err
	}
	if err := buildRaced(ctx, root); err != nil {
		return err
	}
	for name, to := range map[string]*string{"koordlet": &programs.koordlet, "burst": &programs.burst} {
		if *to, err = buildKoordlet(ctx, filepath.Join(cache, "koord"), name); err != nil {
			return err
		}
	}
	return nil
}
