package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// version is that of the messages. Processes of different versions do not hand over.
const version = 1

// Steps, in their order.
const (
	hello    = "hello"
	prepared = "prepared"
	yours    = "yours"
	serving  = "serving"
	mainNow  = "main"
	left     = "left"
	failed   = "failed"
)

// message is what the processes send to each other, as JSON.
type message struct {
	Step    string   `json:"step"`
	Version int      `json:"version,omitempty"` // of hello
	Process *Process `json:"process,omitempty"` // of hello
	Error   string   `json:"error,omitempty"`   // of failed
	Left    *Left    `json:"left,omitempty"`    // of left
}

// Process is what the predecessor tells of itself.
type Process struct {
	PID      int      `json:"pid"`
	Listen   string   `json:"listen"`   // path of the socket for calls
	Owned    bool     `json:"owned"`    // the socket's file is the process' own, and not a service manager's
	StateDir string   `json:"stateDir"` // empty: there is none
	Plugins  []string `json:"plugins"`  // ids of those that are active
}

// Left is a call that has ended in the predecessor after the successor had the state, which does
// what follows the answer.
type Left struct {
	Method  string `json:"method"` // as on the wire
	Request []byte `json:"request"`
	Answer  []byte `json:"answer"`
	Failed  bool   `json:"failed"` // the call has, and there is no answer
}

// channel carries messages between two processes. A process that is gone is an io.EOF.
type channel struct {
	conn    net.Conn
	in      *json.Decoder
	out     *json.Encoder
	sending sync.Mutex // held while a message is sent
}

func newChannel(f *os.File) (*channel, error) {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	return &channel{conn: conn, in: json.NewDecoder(conn), out: json.NewEncoder(conn)}, nil
}

func (c *channel) send(m message, within time.Duration) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	if err := c.conn.SetWriteDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	return c.out.Encode(m)
}

// await returns the next message, which is of this step. within is 0 if it may take any time. With
// ctx's end the error is that of ctx. After an error nothing more can be read.
func (c *channel) await(ctx context.Context, step string, within time.Duration) (m message, err error) {
	var until time.Time
	if within > 0 {
		until = time.Now().Add(within)
	}
	if err := c.conn.SetReadDeadline(until); err != nil {
		return m, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.conn.SetReadDeadline(time.Unix(1, 0)) })()
	switch err := c.in.Decode(&m); {
	case err != nil && ctx.Err() != nil:
		return m, ctx.Err()
	case errors.Is(err, os.ErrDeadlineExceeded):
		return m, fmt.Errorf("it was not %s within %v", step, within)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNRESET): // it has left a message unread
		return m, errEnded
	case err != nil:
		return m, err
	case m.Step == failed:
		return m, errors.New(m.Error)
	case m.Step != step:
		return m, fmt.Errorf("it said %q where %q was due", m.Step, step)
	}
	return m, nil
}

// errEnded says that the other process is gone.
var errEnded = errors.New("it has ended")
