package koord_test

import (
	"net"
	"testing"
	"time"
)

// TestW15ServerRestart has a hook server away until the proxy has tried to
// connect four times, and come back right after that. koord-runtime-proxy keeps
// gRPC's back-off, which has grown to seconds by then and grows to two minutes;
// wasmproxy's ends within 500 ms; the rest of the two seconds is for a busy
// machine.
func TestW15ServerRestart(t *testing.T) {
	scenario{alone: true, incumbent: `not used again after more than 2s`, run: func(n *node) error {
		n.program = programs.wasmproxy // the race detector costs time
		server := n.serve("10-a.json", nil, "Ignore", "PreRunPodSandbox")
		n.start()
		if _, err := n.runPod(podConfig()); err != nil {
			return n.well(err)
		}
		server.stop()
		attempts, stop := n.calling(server.socket)
		for range 4 {
			<-attempts
		}
		stop()
		before := len(server.toldOf("PreRunPodSandbox"))
		n.must(server.start())
		back := time.Now()
		for len(server.toldOf("PreRunPodSandbox")) == before {
			if _, err := n.runPod(podConfig()); err != nil {
				return n.well(err)
			}
			if time.Since(back) > 2*time.Second {
				return wrong("the server is not used again after more than 2s")
			}
			time.Sleep(5 * time.Millisecond)
		}
		n.Logf("used again after %v", time.Since(back))
		return nil
	}}.test(t)
}

// calling listens in a server's place, hangs up on whoever connects, and has
// pods run meanwhile. Each connection is an attempt.
func (n *node) calling(socket string) (attempts chan bool, stop func()) {
	n.Helper()
	l, err := net.Listen("unix", socket)
	n.must(err)
	attempts = make(chan bool, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
			attempts <- true
		}
	}()
	done, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
				n.runPod(podConfig())
			}
		}
	}()
	return attempts, func() {
		close(done)
		<-ended
		l.Close()
	}
}
