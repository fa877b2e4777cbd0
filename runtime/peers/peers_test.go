package peers_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/peers"
)

// TestMain connects when it is started as another process, and stays until its input ends.
func TestMain(m *testing.M) {
	if path := os.Getenv("WASMPROXY_TEST_CONNECT"); path != "" {
		if _, err := net.Dial("unix", path); err != nil {
			os.Exit(1)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestPeers: each process that is connected is there once, with the number of its connections, and goes with the last
// one. A connection can still be closed for writing alone.
func TestPeers(t *testing.T) {
	dir, err := os.MkdirTemp("", "wp")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	var set peers.Set
	noting := set.Listen(l)
	defer noting.Close()
	accept := func() net.Conn {
		c, err := noting.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	begin := time.Now()
	var own []net.Conn
	for range 2 {
		client, err := net.Dial("unix", dir+"/s")
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		own = append(own, accept())
	}
	other := exec.CommandContext(t.Context(), os.Args[0])
	other.Env = append(os.Environ(), "WASMPROXY_TEST_CONNECT="+dir+"/s")
	input, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	theirs := accept()
	program := filepath.Base(os.Args[0])
	program = program[:min(len(program), 15)] // what the kernel keeps
	check := func(want map[int]int) {
		t.Helper()
		all, open := set.All(), 0
		for _, connections := range want {
			open += connections
		}
		if set.Connections() != open {
			t.Errorf("%d connections, want %d", set.Connections(), open)
		}
		if len(all) != len(want) {
			t.Errorf("the peers are %+v, want %v", all, want)
		}
		for _, p := range all {
			if p.Connections != want[p.PID] || p.UID != uint32(os.Geteuid()) || p.Program != program || p.Since.Before(begin) || time.Now().Before(p.Since) {
				t.Errorf("peer %+v, want %v connections", p, want)
			}
		}
	}
	check(map[int]int{os.Getpid(): 2, other.Process.Pid: 1})
	if err := own[0].(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Error(err)
	}
	check(map[int]int{os.Getpid(): 2, other.Process.Pid: 1})
	own[0].Close()
	own[0].Close()
	check(map[int]int{os.Getpid(): 1, other.Process.Pid: 1})
	own[1].Close()
	input.Close()
	if err := other.Wait(); err != nil {
		t.Error(err)
	}
	theirs.Close()
	check(nil)
}
