package cgroupv2_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/settings"
)

// repairTimeout is how long a value may be another's: wasmproxy looks every 90 s, and the guest is slow.
const repairTimeout = 10 * time.Minute

// compare returns how the settings' files differ from these texts.
func (l *limited) compare(t *testing.T, all []settings.Setting, text func(settings.Setting) string) error {
	t.Helper()
	want := map[object]map[string]string{}
	for _, s := range all {
		o := object{s.Pod, s.Object()}
		if want[o] == nil {
			want[o] = map[string]string{}
		}
		want[o][s.File] = text(s)
	}
	var errs []error
	for o, files := range want {
		if diff := cmp.Diff(files, l.groups[o].Read(t, slices.Collect(maps.Keys(files))...)); diff != "" {
			errs = append(errs, errors.New(o.pod+"/"+o.name+" (-want +got):\n"+diff))
		}
	}
	return errors.Join(errs...)
}

// expect waits until the settings' files show these texts: systemd applies properties after it has answered, and reading
// takes seconds. await also waits for scans, each of which looks at a third of the pods.
func (l *limited) expect(t *testing.T, all []settings.Setting, text func(settings.Setting) string) {
	t.Helper()
	node.Eventually(t, 40*time.Second, "the files are as they should be", func() error { return l.compare(t, all, text) })
}

func (l *limited) await(t *testing.T, all []settings.Setting, text func(settings.Setting) string) {
	t.Helper()
	node.Eventually(t, repairTimeout, "the files are as they should be", func() error { return l.compare(t, all, text) })
}

// overwrite writes to every file the value without the plugin, in one command, and past systemd.
func (l *limited) overwrite(t *testing.T, all []settings.Setting) {
	t.Helper()
	var script strings.Builder
	for _, s := range all {
		script.WriteString("echo '" + s.Foreign() + "' > " + l.group(s).Dir() + "/" + s.File + "\n")
	}
	l.Run(t, "set -e\n"+script.String())
}

func (l *limited) group(s settings.Setting) guest.Cgroup { return l.groups[object{s.Pod, s.Object()}] }
