package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Host is a command that takes tests.
type Host struct {
	Command []string
	Timeout time.Duration // of one test
	Stderr  io.Writer     // the command's
}

// Run has the host take the tests, and reports each. The error is the host's: it hung, ended
// early or wrote what is no outcome. The report then has the tests before.
func (h *Host) Run(ctx context.Context, tests []Test) (r Report, err error) {
	dir, err := os.MkdirTemp("", "wasmproxy-abi-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var written []*Test // a test for each module
	for i := range tests {
		t := &tests[i]
		if same := slices.IndexFunc(written, func(w *Test) bool { return bytes.Equal(w.module, t.module) }); same >= 0 {
			t.Module = written[same].Module
			continue
		}
		t.Module = filepath.Join(dir, fmt.Sprintf("%d.wasm", t.ID))
		if err := os.WriteFile(t.Module, t.module, 0o644); err != nil {
			return nil, err
		}
		written = append(written, t)
	}

	p := &process{cmd: exec.CommandContext(ctx, h.Command[0], h.Command[1:]...), lines: make(chan string)}
	p.cmd.Stderr, p.cmd.WaitDelay = h.Stderr, time.Second
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the host: %w", err)
	}
	go func() {
		defer close(p.lines)
		scanner := bufio.NewScanner(out)
		scanner.Buffer(nil, maxLine)
		for scanner.Scan() {
			select {
			case p.lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
		p.read = scanner.Err()
	}()

	for i := range tests {
		verdict, err := h.take(p, &tests[i])
		if err != nil {
			return r, fmt.Errorf("host %s: test %d, %s: %w", h.Command[0], tests[i].ID, tests[i].Name, errors.Join(err, p.kill()))
		}
		r = append(r, verdict)
	}
	if err := p.finish(h.Timeout); err != nil {
		return r, fmt.Errorf("host %s: after the last test: %w", h.Command[0], err)
	}
	return r, nil
}

// process is a host that runs. lines has what it writes, and is closed at its end.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	read  error // after lines is closed
}

// take has the host take one test.
func (h *Host) take(p *process, t *Test) (Verdict, error) {
	line, err := t.encode()
	if err != nil {
		return Verdict{}, err
	}
	go p.in.Write(line) // which fails if the host has ended, and then so do its lines
	timer := time.NewTimer(h.Timeout)
	defer timer.Stop()
	var answer string
	var more bool
	select {
	case answer, more = <-p.lines:
	case <-timer.C:
		return Verdict{}, fmt.Errorf("it has written no outcome for %v", h.Timeout)
	}
	switch {
	case more:
	case p.read != nil:
		return Verdict{}, fmt.Errorf("its outcome cannot be read: %w", p.read)
	default:
		if err = p.wait(h.Timeout); err == nil {
			err = errors.New("exit status 0")
		}
		return Verdict{}, fmt.Errorf("its output has ended without an outcome: %w", err)
	}

	var o Outcome
	d := json.NewDecoder(strings.NewReader(answer))
	d.DisallowUnknownFields()
	err = d.Decode(&o)
	switch {
	case err != nil:
	case o.ID != t.ID:
		err = fmt.Errorf("id is %d, want %d", o.ID, t.ID)
	case !slices.Contains([]Result{Done, Refused, Failed, Unsupported}, o.Result):
		err = fmt.Errorf("result is %q, want done, refused, failed or unsupported", o.Result)
	}
	if err != nil {
		return Verdict{}, fmt.Errorf("it wrote what is no outcome, %s: %w", shortened(answer), err)
	}
	return t.verdict(o), nil
}

// wait waits for the end of a host that has closed its output, and ends one that takes longer than timeout.
func (p *process) wait(timeout time.Duration) error {
	end := time.AfterFunc(timeout, func() { p.cmd.Process.Kill() })
	err := p.cmd.Wait()
	if !end.Stop() {
		return fmt.Errorf("it still runs %v later", timeout)
	}
	return err
}

func (p *process) kill() error {
	if p.cmd.ProcessState != nil {
		return nil // its end was told
	}
	err := p.cmd.Process.Kill()
	p.cmd.Wait() // which fails, since it was killed
	return err
}

// finish ends the host's input, and requires that it then ends.
func (p *process) finish(timeout time.Duration) error {
	if err := p.in.Close(); err != nil {
		return errors.Join(err, p.kill())
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case line, more := <-p.lines:
		switch {
		case more:
			return errors.Join(fmt.Errorf("it wrote one outcome too many, %s", shortened(line)), p.kill())
		case p.read != nil:
			return errors.Join(fmt.Errorf("it wrote one outcome too many: %w", p.read), p.kill())
		}
		return p.wait(timeout)
	case <-timer.C:
		return errors.Join(fmt.Errorf("its input has ended, and it has not for %v", timeout), p.kill())
	}
}

// shortened is a line of a host as an error shows it.
func shortened(line string) string {
	const most = 200 // bytes
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return fmt.Sprintf("%q", line)
}
