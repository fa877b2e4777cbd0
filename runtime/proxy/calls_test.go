package proxy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// TestCalls: calls are counted by method, and names that callers make up do
// not fill the memory.
func TestCalls(t *testing.T) {
	backend := socketPath(t)
	startBackend(t, backend, echo)
	s := proxy.New(proxy.Options{Backend: dial(t, backend), Observer: observe.Discard()})
	path := socketPath(t)
	serve(t, s, listen(t, path))
	conn := connect(t, path)
	call := func(method string) {
		t.Helper()
		if _, err := invoke(withTimeout(t, 10*time.Second), conn, method, nil); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		call(version)
		call(chat)
	}
	call(listImages)
	call("/" + strings.Repeat("long", 1000) + "/M")
	for i := range 1000 {
		call(fmt.Sprintf("/made.up.v%d.Service/Method", i))
	}
	got := s.Calls()
	if got[version] != 3 || got[chat] != 3 || got[listImages] != 1 {
		t.Errorf("counts are %v", got)
	}
	var sum uint64
	for name, n := range got {
		sum += n
		if len(name) > 256 {
			t.Errorf("a name of %d bytes is kept", len(name))
		}
	}
	if want := uint64(3 + 3 + 1 + 1 + 1000); sum != want || len(got) > 100 {
		t.Errorf("%d calls are counted under %d names, want %d under 100 at most", sum, len(got), want)
	}
}
