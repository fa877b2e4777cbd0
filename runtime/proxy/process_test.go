package proxy_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// The test binary starts itself again as a process of another role, told by
// this variable, on the socket that the second names.
const (
	roleVar = "WASMPROXY_TEST_ROLE"
	pathVar = "WASMPROXY_TEST_PATH"
)

func TestMain(m *testing.M) {
	path := os.Getenv(pathVar)
	switch role := os.Getenv(roleVar); role {
	case "":
		os.Exit(m.Run())
	case "backend":
		exitOn(runBackend(path))
	case "listener":
		exitOn(runListener(path))
	default:
		exitOn(errors.New("no such role: " + role))
	}
}

func exitOn(err error) {
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

// A process is this binary in another role.
type process struct {
	*exec.Cmd
	stdout *bufio.Reader
}

func start(t *testing.T, role, path string) process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"="+role, pathVar+"="+path)
	stdin, err1 := cmd.StdinPipe() // the process ends when it is closed
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return process{cmd, bufio.NewReader(stdout)}
}

// ready waits until the process does its work, and is false if it has ended
// instead.
func (p process) ready() bool {
	_, err := p.stdout.ReadString('\n')
	return err == nil
}

func (p process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.Wait()
}

// runBackend echoes, but answers events with a stream that never ends, and
// hangs on version.
func runBackend(path string) error {
	os.Remove(path)
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		switch method, _ := grpc.MethodFromServerStream(stream); method {
		case version:
			<-stream.Context().Done()
			return stream.Context().Err()
		case events:
			return sendForever(stream)
		}
		return echo("", stream)
	}))
	os.Stdout.WriteString("ready\n")
	return s.Serve(l)
}

func sendForever(stream grpc.ServerStream) error {
	for {
		if err := sendAll(stream, []byte("event")); err != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// runListener fails if it cannot have the path, else keeps it until stdin is
// closed.
func runListener(path string) error {
	l, err := proxy.Listen(context.Background(), path, 0o660)
	if err != nil {
		return err
	}
	os.Stdout.WriteString("ready\n")
	io.Copy(io.Discard, os.Stdin)
	return l.Close()
}
