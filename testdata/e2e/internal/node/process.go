package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/isolation"
)

// stopTimeout is how long a process may take to end when asked.
const stopTimeout = time.Minute

// process is a part of the node. Its output goes to a file, to which a restart appends.
type process struct {
	name  string
	log   string // file
	cmd   *exec.Cmd
	asked bool          // to end
	ended chan struct{} // closed when the process has ended; then err is set
	err   error
}

// startProcess starts cmd; its log is shown when the test fails.
func startProcess(t testing.TB, name string, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{name: name, cmd: cmd, ended: make(chan struct{})}
	p.log = filepath.Join(isolation.Current().Log, strings.ReplaceAll(t.Name(), "/", "-")+"-"+name+".log")
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatalf("opening the log of %s: %v", name, err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("starting %s: %v", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() { p.showLog(t) })
	return p
}

// alive returns an error when the process has ended.
func (p *process) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s has ended: %v", p.name, p.cmd.ProcessState)
	default:
		return nil
	}
}

// stop asks the process to end, as systemd would. It returns an error if the
// process fails, or had ended of its own. A second stop does nothing, nor one after kill.
func (p *process) stop() error {
	if p.asked {
		return nil
	}
	if err := p.alive(); err != nil {
		return err
	}
	p.asked = true
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("stopping %s: %w", p.name, err)
	}
	select {
	case <-p.ended:
		return p.err
	case <-time.After(Slowly(stopTimeout)):
		p.kill()
		return fmt.Errorf("%s did not end within %v of SIGTERM and was killed", p.name, stopTimeout)
	}
}

// kill ends the process without warning.
func (p *process) kill() {
	p.asked = true
	p.cmd.Process.Kill() // fails only if it has ended
	<-p.ended
}

// showLog prints the end of the log of a failed test.
func (p *process) showLog(t testing.TB) {
	if !t.Failed() {
		return
	}
	log, err := os.ReadFile(p.log)
	if err != nil {
		t.Logf("reading the log of %s: %v", p.name, err)
		return
	}
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	const last, width = 20, 240 // else the logs of a node bury what the test says
	lines = lines[max(0, len(lines)-last):]
	for i, line := range lines {
		lines[i] = line[:min(len(line), width)]
	}
	t.Logf("the last lines of %s:\n%s", p.log, strings.Join(lines, "\n"))
}

// StartProgram starts a program of the workspace. When the test ends it must still be running, and is killed.
func StartProgram(t testing.TB, name string, args ...string) {
	t.Helper()
	p := startProcess(t, name, exec.Command(isolation.Current().Program(name), args...))
	t.Cleanup(func() {
		if err := p.alive(); err != nil {
			t.Error(err)
		}
		p.kill()
	})
}

// Run runs a command to its end. Its output goes to a log, whose file it
// returns, and is shown when the test fails.
func Run(t testing.TB, name string, cmd *exec.Cmd) (log string, err error) {
	t.Helper()
	p := startProcess(t, name, cmd)
	<-p.ended
	return p.log, p.err
}
