package enforce

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// journalFile is the file of the state directory that has the records. Each change is a line at its end.
const journalFile = "journal"

// stateVersion is that of the lines. One of another version is ignored.
const stateVersion = 1

// maxJournal bounds the file, in bytes. That of a node with 2,000 containers and 10 values each has at most 12 MiB.
const maxJournal = 256 << 20

// slack is how much longer, in bytes, the journal may be than twice what it had when it was last written anew.
const slack = 64 << 10

// line is a line of the journal: all that is known of one object. One without values is gone. It has no
// environment variable, and nothing else of a container's config but resources.
type line struct {
	Version   int               `json:"version"`
	Pod       string            `json:"pod"`                 // UID
	Container string            `json:"container,omitempty"` // ID; empty: the pod itself
	Ignored   string            `json:"ignored,omitempty"`   // why an earlier line of the pod was ignored; nothing else is said then
	Group     string            `json:"group,omitempty"`
	Values    map[Target]*Value `json:"values,omitempty"`
}

// line is the line of an object, or of one that has no record, without its end. It is kept, so that no change waits long for a journal
// that is written anew.
func (o *object) line(id ID) (text []byte, err error) {
	if o == nil {
		return json.Marshal(line{Version: stateVersion, Pod: id.Pod, Container: id.Container})
	}
	if o.text == nil {
		o.text, err = json.Marshal(line{Version: stateVersion, Pod: id.Pod, Container: id.Container, Group: o.group, Values: o.values})
	}
	return o.text, err
}

// texts are the lines of a journal that has nothing but what is known.
func (l *Ledger) texts() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for uid, reason := range l.ignored {
			if !yield(json.Marshal(line{Version: stateVersion, Pod: uid, Ignored: reason.Error()})) {
				return
			}
		}
		for id, o := range l.objects() {
			if !yield(o.line(id)) {
				return
			}
		}
	}
}

// save has the journal say what is known of objects, in a line of each. With none, and where that fails, it writes the journal anew. If
// that fails, too, it is an event, once until it succeeds again: the values are written nevertheless. The next change, or Keep, tries
// again. The caller has the lock.
func (l *Ledger) save(ids ...ID) {
	if l.journal.dir == "" {
		return
	}
	var lines []byte
	var err error
	for _, id := range ids {
		text, failed := l.find(id).line(id)
		lines, err = append(append(lines, text...), '\n'), cmp.Or(err, failed)
	}
	if err == nil && len(lines) > 0 && l.journal.write(lines) {
		return
	}
	err = l.journal.rewrite(l.texts())
	if err != nil && l.unsaved == nil {
		l.observer.Observe(context.Background(), &observe.StateNotSaved{File: journalFile, Err: err})
	}
	l.unsaved = err
}

// Keep writes the journal anew if somebody has removed it, or it lacks what is known.
func (l *Ledger) Keep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsaved != nil || l.journal.removed() {
		l.save()
	}
}

// journal is the file of the records.
type journal struct {
	dir  string   // its directory; empty: the records are only in memory, or another process has the directory
	file *os.File // changes are added to it; nil: the next one writes it anew
	size int64    // in bytes
	most int64    // the size from which on it is written anew
}

// removed reports whether somebody has removed the file: no directory has it any more.
func (j *journal) removed() bool {
	if j.file == nil {
		return false
	}
	info, err := j.file.Stat()
	return err != nil || info.Sys().(*syscall.Stat_t).Nlink == 0
}

// write adds lines, or reports false: also if it is too long.
func (j *journal) write(lines []byte) bool {
	if j.file == nil || j.size > j.most {
		return false
	}
	if _, err := j.file.Write(lines); err != nil {
		j.file.Truncate(j.size) // a part of them may be there, and be all that is left if the journal cannot be written anew
		return false
	}
	j.size += int64(len(lines))
	return true
}

// rewrite writes a journal beside the one that is there, and puts it in its place.
func (j *journal) rewrite(texts iter.Seq2[[]byte, error]) error {
	j.leave()
	name := filepath.Join(j.dir, journalFile)
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, slack)
	for text, failed := range texts {
		if err = failed; err != nil {
			break
		}
		out.Write(text)
		out.WriteByte('\n') // Flush returns what fails
	}
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = os.Rename(name+".new", name)
	}
	if err == nil {
		j.size, err = f.Seek(0, io.SeekCurrent)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name())) // it may have what was left of the file system
	}
	j.file, j.most = f, 2*j.size+slack
	return nil
}

// leave closes the journal. The next change writes it anew.
func (j *journal) leave() {
	if j.file != nil {
		j.file.Close() // what was written is in the file
		j.file = nil
	}
}

// load has the records be those of the journal. An event tells of each line that it ignores. After an error, none is read.
func (l *Ledger) load(ctx context.Context) error {
	own := func(info fs.FileInfo) error { return regular.Own(info, 0o022) }
	f, err := regular.Open(filepath.Join(l.journal.dir, journalFile), maxJournal, own)
	switch {
	case errors.Is(err, fs.ErrNotExist): // nothing is known
		return nil
	case errors.As(err, new(syscall.Errno)):
		return err
	case err != nil:
		return fmt.Errorf("the journal %w", err)
	}
	defer f.Close()
	read := NewLedger()
	bad, err := read.from(f)
	if err != nil {
		return err
	}
	for _, err := range bad {
		l.observer.Observe(ctx, &observe.StateIgnored{File: journalFile, Err: err})
	}
	l.pods, l.ignored = read.pods, read.ignored
	return nil
}

// from reads the lines of a journal. bad says which were ignored: the first one, how many more, and a last one without an end. That
// was being written when the proxy was killed, so that its change was not carried out.
func (l *Ledger) from(f io.Reader) (bad []error, err error) {
	in, more := bufio.NewReader(f), 0
	for n := 1; ; n++ {
		text, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, err
		}
		if err == io.EOF {
			if more > 0 {
				bad = append(bad, fmt.Errorf("%d more lines are ignored", more))
			}
			if len(text) > 0 {
				bad = append(bad, fmt.Errorf("line %d has no end: the proxy was killed while it wrote it", n))
			}
			return bad, nil
		}
		switch uid, err := l.read(text); {
		case err == nil:
		case len(bad) == 0:
			l.ignored[uid] = fmt.Errorf("line %d: %w", n, err)
			bad = append(bad, l.ignored[uid])
		default:
			l.ignored[uid] = fmt.Errorf("line %d: %w", n, err)
			more++
		}
	}
}

// read takes what a line says. An error says why that is ignored, of the pod if the line names it.
func (l *Ledger) read(text []byte) (uid string, err error) {
	var s line
	if err = json.Unmarshal(text, &s); err == nil {
		err = s.check()
	}
	if err != nil {
		return s.Pod, err
	}
	if s.Ignored != "" {
		l.ignored[s.Pod] = errors.New(s.Ignored)
		return "", nil
	}
	id := ID{s.Pod, s.Container}
	o := l.object(id)
	o.group, o.text = s.Group, bytes.TrimSpace(text)
	clear(o.values)
	for t, v := range s.Values {
		if v == nil {
			continue
		}
		for i, w := range v.Wishes {
			if now := time.Now(); w.At.After(now) { // the clock was set back since
				v.Wishes[i].At = now
			}
		}
		o.values[t] = v
	}
	l.prune(id)
	return "", nil
}
