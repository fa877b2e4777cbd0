package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/coreos/go-systemd/v22/journal"
	"gopkg.in/natefinch/lumberjack.v2"
)

func outputOf(o Options) output {
	if o.To == Journald {
		return journald{}
	}
	return &file{log: lumberjack.Logger{Filename: o.To, MaxSize: int(o.MaxBytes >> 20), MaxBackups: o.Backups}}
}

// file is a file that only the proxy's user may read. It is renamed when it is full.
type file struct {
	log lumberjack.Logger
	at  os.FileInfo // of the file that was made private; nil: none
}

func (f *file) write(line []byte) error {
	// The library would go on to write to a file that somebody has removed or renamed, and gives the next one the mode of
	// the one before: so the file is made here, unless it is there as it was.
	at, err := os.Stat(f.log.Filename)
	if err == nil && !at.Mode().IsRegular() { // the mode and the name of a device, such as /dev/null, are not the proxy's
		return fmt.Errorf("%s is not a regular file", f.log.Filename)
	}
	if err != nil || f.at == nil || !os.SameFile(at, f.at) {
		f.at = nil
		_ = f.log.Close() // its lines are written
		made, err := os.OpenFile(f.log.Filename, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return err
		}
		at, err := made.Stat()
		if err = errors.Join(err, made.Chmod(0o600), made.Close()); err != nil {
			return err
		}
		f.at = at
	}

	n, err := f.log.Write(line)
	if err == nil {
		return nil
	}
	f.at = nil
	_ = f.log.Close()                                            // the next line opens it again, at its end
	if at, bad := os.Stat(f.log.Filename); n > 0 && bad == nil { // a part of a line would spoil the next
		err = errors.Join(err, os.Truncate(f.log.Filename, at.Size()-int64(n)))
	}
	return err
}

func (f *file) close() error { return f.log.Close() }

// journald is the journal of the node's systemd.
type journald struct{}

func (journald) write(line []byte) error {
	return journal.Send(string(bytes.TrimSuffix(line, []byte("\n"))), journal.PriInfo, map[string]string{"SYSLOG_IDENTIFIER": "wasmproxy-audit"})
}

func (journald) close() error { return nil }
