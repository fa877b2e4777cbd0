package handover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// variable is that of the environment which says that a process is a successor, and of which one.
const variable = "HANDOVER_FROM_PID"

// Descriptors that a successor has from its predecessor.
const (
	channelFD  = 3
	listenerFD = 4
)

// mainTime bounds the time from serving to main, in which the predecessor closes its listener.
const mainTime = 5 * time.Second

// Predecessor is the other process, as the successor has it. The methods are for one goroutine.
type Predecessor struct {
	Process
	channel  *channel
	listener net.Listener
}

// Asked reports whether this process was started to take the place of another, before FromEnvironment is called.
func Asked() bool { return os.Getenv(variable) != "" }

// FromEnvironment returns the process that has started this one to take its place; nil if this
// one was started otherwise. It takes that out of the environment, so it is called once. The
// caller closes the Predecessor.
func FromEnvironment() (*Predecessor, error) {
	if !Asked() {
		return nil, nil
	}
	_ = os.Unsetenv(variable)
	unix.CloseOnExec(channelFD)
	unix.CloseOnExec(listenerFD)
	socket := os.NewFile(listenerFD, "listener")
	defer socket.Close()
	c, err := newChannel(os.NewFile(channelFD, "predecessor"))
	if err != nil {
		return nil, fmt.Errorf("taking over from another process: opening the channel: %w", err)
	}
	p := &Predecessor{channel: c}
	if err := p.begin(socket); err != nil {
		return nil, errors.Join(p.Fail(fmt.Errorf("taking over from another process: %w", err)), c.conn.Close())
	}
	return p, nil
}

func (p *Predecessor) begin(socket *os.File) error {
	m, err := p.channel.await(context.Background(), hello, sendTime)
	switch {
	case err != nil:
		return err
	case m.Version != version || m.Process == nil:
		return fmt.Errorf("it hands over as version %d, and this process as version %d: restart the service instead", m.Version, version)
	}
	p.Process = *m.Process
	if p.listener, err = net.FileListener(socket); err != nil {
		return fmt.Errorf("opening the socket for calls: %w", err)
	}
	return nil
}

// Listener returns the socket for calls.
func (p *Predecessor) Listener() net.Listener { return p.listener }

// Fail tells the predecessor why this process cannot take its place, and returns that.
func (p *Predecessor) Fail(err error) error {
	_ = p.channel.send(message{Step: failed, Error: err.Error()}, sendTime)
	return err
}

// Prepared says that this process can take the state, and returns when it has that. Calls wait
// from then on until it serves. An error says that the predecessor keeps it.
func (p *Predecessor) Prepared() error {
	err := p.channel.send(message{Step: prepared}, sendTime)
	if err == nil {
		_, err = p.channel.await(context.Background(), yours, 0)
	}
	return p.wrap(err)
}

// Serving says that this process is about to accept connections, and returns when the predecessor
// does not any more. One that has ended meanwhile does not.
func (p *Predecessor) Serving() error {
	if err := p.channel.send(message{Step: serving}, sendTime); err != nil {
		return p.wrap(err)
	}
	if _, err := p.channel.await(context.Background(), mainNow, mainTime); err != nil && !errors.Is(err, errEnded) {
		return p.wrap(err)
	}
	return nil
}

// Left returns the next call that has ended late; false if there will be none.
func (p *Predecessor) Left() (Left, bool) {
	m, err := p.channel.await(context.Background(), left, 0)
	if err != nil || m.Left == nil {
		return Left{}, false
	}
	return *m.Left, true
}

func (p *Predecessor) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("taking over from process %d: %w", p.PID, err)
}

// Close ends the channel. The listener stays open.
func (p *Predecessor) Close() error { return p.channel.conn.Close() }
