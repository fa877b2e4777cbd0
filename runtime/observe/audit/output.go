package audit

import (
	"bytes"
	"errors"
	"os"

	"github.com/coreos/go-systemd/v22/journal"
	"gopkg.in/natefinch/lumberjack.v2"
)

func outputOf(o Options) output {
	if o.To == Journald {
		return journald{}
	}
	return &file{lumberjack.Logger{Filename: o.To, MaxSize: int(o.MaxBytes >> 20), MaxBackups: o.Backups}, false}
}

// file is a file that only the proxy's user may read. It is renamed when it is full.
type file struct {
	log     lumberjack.Logger
	private bool // it was made so
}

func (f *file) write(line []byte) error {
	if err := f.makePrivate(); err != nil {
		return err
	}
	n, err := f.log.Write(line)
	if err == nil {
		return nil
	}
	f.private = false                                            // somebody may have removed it
	_ = f.log.Close()                                            // the next line opens it again, at its end
	if at, bad := os.Stat(f.log.Filename); n > 0 && bad == nil { // a part of a line would spoil the next
		err = errors.Join(err, os.Truncate(f.log.Filename, at.Size()-int64(n)))
	}
	return err
}

// makePrivate makes the file, which the library gives the mode of the one before.
func (f *file) makePrivate() error {
	if f.private {
		return nil
	}
	of, err := os.OpenFile(f.log.Filename, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(of.Chmod(0o600), of.Close())
	f.private = err == nil
	return err
}

func (f *file) close() error { return f.log.Close() }

// journald is the journal of the node's systemd.
type journald struct{}

func (journald) write(line []byte) error {
	return journal.Send(string(bytes.TrimSuffix(line, []byte("\n"))), journal.PriInfo, map[string]string{"SYSLOG_IDENTIFIER": "wasmproxy-audit"})
}

func (journald) close() error { return nil }
