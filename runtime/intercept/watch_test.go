package intercept_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/ledger"
)

// A scan leaves out a container of which nothing was heard since it was found right, for some scans.
// A file that takes the place of another is nothing that inotify tells of, and shows that.
func TestScanLeavesOutWhatNobodyWrote(t *testing.T) {
	n, pod, dir := running(t)
	const unheard = "777"
	replace := func() {
		t.Helper()
		beside := filepath.Join(pod, "new")
		n.must(os.WriteFile(beside, []byte(unheard), 0o644))
		n.must(os.Rename(beside, filepath.Join(dir, "memory.high")))
	}
	repairedAfter := func() (scans int) {
		t.Helper()
		for ; content(t, dir, "memory.high") == unheard; scans++ {
			if scans == 20 {
				t.Fatalf("memory.high is %s after %d scans", unheard, scans)
			}
			intercept.Scan(t.Context(), n.options)
		}
		return scans
	}
	settle := func() {
		for range 3 {
			intercept.Scan(t.Context(), n.options)
		}
	}
	settle()
	replace()
	first := repairedAfter()
	settle()
	replace()
	if second := repairedAfter(); max(first, second) < 5 {
		t.Errorf("the container was looked at in scans %d and %d, of which nothing was heard", first, second)
	}
	for name, happens := range map[string]func(){
		"a write":          func() { put(t, dir, "memory.max", "9999") },
		"a note of a call": func() { n.options.Ledger.Note(ledger.ID{Pod: "u1", Container: "c1"}, "a test") },
	} {
		settle()
		replace()
		happens()
		if scans := repairedAfter(); scans > 1 {
			t.Errorf("after %s the container was looked at in scan %d", name, scans)
		}
	}
}
