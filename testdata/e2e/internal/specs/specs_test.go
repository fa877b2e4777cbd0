package specs_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/specs"
)

// report is what ginkgo 2.28 writes, without attributes that are not read.
const report = `<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="6">
  <testsuite name="Suite" tests="6">
    <testcase name="[SynchronizedBeforeSuite]" status="passed"></testcase>
    <testcase name="[It] a passes" status="passed"></testcase>
    <testcase name="[It] b fails" status="failed"><failure type="failed">no</failure></testcase>
    <testcase name="[It] c takes too long" status="timedout"><failure type="timedout">no</failure></testcase>
    <testcase name="[It] d has nothing to test" status="skipped"><skipped message="skipped - no GPU"></skipped></testcase>
    <testcase name="[It] e is not asked for" status="skipped"><skipped message="skipped"></skipped></testcase>
  </testsuite>
</testsuites>`

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "junit.xml")
	if err := os.WriteFile(file, []byte(report), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := specs.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	want := specs.Results{
		"a passes": specs.Passed, "b fails": specs.Failed, "c takes too long": specs.Failed,
		"d has nothing to test": specs.Skipped, "e is not asked for": specs.Unchosen,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n := got.Count(specs.Failed); n != 2 {
		t.Errorf("%d failed, want 2", n)
	}
	if _, err := specs.Read(file + ".missing"); err == nil {
		t.Error("a report that is missing is no error")
	}
}
