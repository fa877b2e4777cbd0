package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// save replaces the pod's file. A failure is an event, once until it succeeds again: the values
// are written nevertheless. Release tries again. The caller has the lock.
func (l *Ledger) save(uid string, p *pod) error {
	if l.dir == nil || l.away {
		return nil
	}
	file := stateFile(uid)
	text, err := p.encode(l.buffer[:0], uid, l.ignored[file])
	if err == nil {
		err = l.replace(file, text)
	}
	if l.buffer = text; cap(text) > maxBuffer {
		l.buffer = nil
	}
	p.unsaved = err != nil
	if err == nil {
		delete(l.unerased, uid)
	}
	l.report(file, err)
	return err
}

// maxBuffer bounds the buffer that is kept between saves, in bytes: a pod with 100 containers and
// 30 values each fits.
const maxBuffer = 1 << 20

// encode appends the pod's state, with the reason for which its file before was ignored. Only objects that have changed are encoded anew, since a pod may
// have many containers.
func (p *pod) encode(text []byte, uid string, ignored error) ([]byte, error) {
	name, err := json.Marshal(uid)
	if err != nil {
		return text, err
	}
	text = strconv.AppendInt(append(text, `{"version":`...), stateVersion, 10)
	text = append(append(text, `,"pod":`...), name...)
	if ignored != nil {
		reason, err := json.Marshal(ignored.Error())
		if err != nil {
			return text, err
		}
		text = append(append(text, `,"ignored":`...), reason...)
	}
	opening := `,"containers":{`
	for container, o := range p.objects {
		if err := o.encode(container); err != nil {
			return text, err
		}
		if container != "" {
			text = append(append(text, opening...), o.text...)
			opening = ","
		}
	}
	if opening == "," {
		text = append(text, '}')
	}
	if own := p.objects[""]; own != nil {
		text = append(append(text, ','), own.text...)
	}
	return append(text, '}'), nil
}

// encode sets the text of the object: the fields of a pod, or a container's with its ID.
func (o *object) encode(container string) error {
	if o.text != nil {
		return nil
	}
	text, err := json.Marshal(savedObject{o.group, o.values})
	if err != nil {
		return err
	}
	if container == "" {
		o.text = text[1 : len(text)-1]
		return nil
	}
	name, err := json.Marshal(container)
	o.text = append(append(name, ':'), text...)
	return err
}

// replace writes a file of the directory beside the one of that name, and puts it in its place. A call
// waits for it: os.Root takes ten system calls in the place of four.
func (l *Ledger) replace(name string, text []byte) error {
	temporary, dir := name+".new", int(l.files.Fd())
	fd, err := unix.Openat(dir, temporary, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return &fs.PathError{Op: "open", Path: temporary, Err: err}
	}
	for rest := text; err == nil && len(rest) > 0; {
		n, failed := unix.Write(fd, rest)
		if failed != unix.EINTR {
			rest, err = rest[max(n, 0):], failed
		}
	}
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return &fs.PathError{Op: "write", Path: temporary, Err: err}
	}
	if err := unix.Renameat(dir, temporary, dir, name); err != nil {
		return &fs.PathError{Op: "rename", Path: temporary, Err: err}
	}
	return nil
}

// erase removes the file of a pod of which nothing is to be known.
func (l *Ledger) erase(uid string) error {
	if l.dir == nil || l.away {
		return nil
	}
	if err := l.dir.Remove(stateFile(uid)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if l.unerased == nil {
			l.unerased = map[string]bool{}
		}
		l.unerased[uid] = true
		l.report(stateFile(uid), err)
		return err
	}
	delete(l.unerased, uid)
	return nil
}

func (l *Ledger) report(name string, err error) {
	if err != nil && !l.unsafe {
		l.observer.Observe(context.Background(), &observe.StateNotSaved{File: name, Err: err})
	}
	l.unsafe = err != nil
}
