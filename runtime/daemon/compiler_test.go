package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/wasm"
)

// The test binary is also the program that compiles plugins. It takes as long as the test
// wants it to.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == wasm.CompilerCommand {
		if err := compile(os.Args[2]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var guestName = regexp.MustCompile(`"name": ?"([^"]+)"`)

// compile does what the program does, and what the files beside the cache say: it
// waits as long as there is one called held-NAME, and refuses the module if there is one
// called broken-NAME. The names of what it was to compile are the lines of compiled.
func compile(argument string) error {
	var job struct{ Dir string }
	if err := json.Unmarshal([]byte(argument), &job); err != nil {
		return err
	}
	module, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	dir, name := filepath.Dir(filepath.Dir(job.Dir)), ""
	if found := guestName.FindSubmatch(module); found != nil {
		name = string(found[1])
	}
	done, err := os.OpenFile(filepath.Join(dir, "compiled"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintln(done, name)
	for there(filepath.Join(dir, "held-"+name)) {
		time.Sleep(5 * time.Millisecond)
	}
	if there(filepath.Join(dir, "broken-"+name)) {
		fmt.Print("the test wants it so")
		return errors.New("broken")
	}
	return wasm.RunCompiler(context.Background(), argument, bytes.NewReader(module), os.Stdout)
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// hold keeps a guest of testdata/wat from being compiled until the test, or what it
// returns, ends that.
func (n *node) hold(guest string) (release func()) {
	n.t.Helper()
	path := filepath.Join(n.dir, "held-"+guest)
	n.must(os.WriteFile(path, nil, 0o600))
	return func() { os.Remove(path) }
}

// broken makes the compiler refuse a guest.
func (n *node) broken(guest string) {
	n.t.Helper()
	n.must(os.WriteFile(filepath.Join(n.dir, "broken-"+guest), nil, 0o600))
}

// compiled counts how often the compiler was given a guest.
func (n *node) compiled(guest string) int {
	b, _ := os.ReadFile(filepath.Join(n.dir, "compiled"))
	return strings.Count("\n"+string(b), "\n"+guest+"\n")
}

// awaitCompiler waits until the compiler has been given a guest.
func (n *node) awaitCompiler(guest string) {
	n.t.Helper()
	for end := time.Now().Add(patience); n.compiled(guest) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("%s is not compiled; the daemon's log:\n%s", guest, n.log)
		}
	}
}
