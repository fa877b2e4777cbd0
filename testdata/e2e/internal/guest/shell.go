package guest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/node"
)

// shell is a connection to the guest as root.
type shell struct{ ssh *ssh.Client }

// dialShell connects as soon as the guest answers.
func dialShell(t testing.TB, image Image, address string, ended <-chan error) shell {
	t.Helper()
	config, err := sshConfig(image)
	if err != nil {
		t.Fatalf("reading the keys of the guest's image: %v", err)
	}
	start := time.Now()
	for {
		client, err := connect(address, config)
		if err == nil {
			t.Cleanup(func() { client.Close() })
			t.Logf("the guest answered after %.0f s", time.Since(start).Seconds())
			return shell{client}
		}
		if time.Since(start) > bootTimeout {
			t.Fatalf("the guest did not answer within %v: %v", bootTimeout, err)
		}
		select {
		case err := <-ended:
			t.Fatalf("waiting for the guest: %v", err)
		case <-time.After(time.Second):
		}
	}
}

func sshConfig(image Image) (*ssh.ClientConfig, error) {
	pem, err := os.ReadFile(image.file("key"))
	if err != nil {
		return nil, err
	}
	key, err := ssh.ParsePrivateKey(pem)
	if err != nil {
		return nil, err
	}
	line, err := os.ReadFile(image.file("host-key"))
	if err != nil {
		return nil, err
	}
	hostKey, _, _, _, err := ssh.ParseAuthorizedKey(line)
	if err != nil {
		return nil, err
	}
	return &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(hostKey)}, nil
}

// connect gives up after a while: QEMU accepts connections long before the guest does.
func connect(address string, config *ssh.ClientConfig) (*ssh.Client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	client, channels, requests, err := ssh.NewClientConn(conn, address, config)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return ssh.NewClient(client, channels, requests), conn.SetDeadline(time.Time{})
}

// Run runs a command line in the guest and returns what it prints, without the last newline.
func (s shell) Run(t testing.TB, command string) string {
	t.Helper()
	out, err := s.run(command)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Await waits until a command succeeds in the guest.
func (s shell) Await(t testing.TB, command string) {
	t.Helper()
	node.Eventually(t, commandTimeout, command+" succeeds in the guest", func() error {
		_, err := s.run(command)
		return err
	})
}

func (s shell) run(command string) (string, error) { return s.RunFor(commandTimeout, nil, command) }

// RunFor runs a command with this input, for at most this long. It returns what the command prints
// without the last newline, also with an error.
func (s shell) RunFor(timeout time.Duration, input io.Reader, command string) (string, error) {
	session, err := s.ssh.NewSession()
	if err != nil {
		return "", fmt.Errorf("running %s in the guest: %w", command, err)
	}
	defer session.Close()
	timer := time.AfterFunc(timeout, func() { session.Close() })
	defer timer.Stop()
	var stderr bytes.Buffer
	session.Stdin, session.Stderr = input, &stderr
	out, err := session.Output(command)
	if err != nil {
		err = fmt.Errorf("running %s in the guest: %w\n%s%s", command, err, out, &stderr)
	}
	return strings.TrimRight(string(out), "\n"), err
}

// WriteFile makes a file of the guest appear whole. Until then its name begins with a dot.
func (s shell) WriteFile(t testing.TB, file string, data []byte) {
	t.Helper()
	dir, name := path.Split(file)
	if _, err := s.RunFor(commandTimeout, bytes.NewReader(data), fmt.Sprintf("cat > %[1]s.%[2]s && mv %[1]s.%[2]s %[1]s%[2]s", dir, name)); err != nil {
		t.Fatal(err)
	}
}

// forward listens in the guest and connects all who come there to an address of this machine.
func (s shell) forward(t testing.TB, inGuest, here string) {
	t.Helper()
	listener, err := s.ssh.Listen("tcp", inGuest)
	if err != nil {
		t.Fatalf("listening at %s in the guest: %v", inGuest, err)
	}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return // the connection to the guest has ended
			}
			go join(from, here)
		}
	}()
}

func join(from net.Conn, address string) {
	defer from.Close()
	to, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		io.Copy(to, from)
		to.(*net.TCPConn).CloseWrite()
	}()
	io.Copy(from, to)
}
