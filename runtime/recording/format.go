package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// Version is that of the format. A reader takes no other one.
const Version = 1

// Header is the first line: of what the recording is, and with which settings the plugin ran.
type Header struct {
	Version  int                `json:"recording"`
	Plugin   string             `json:"plugin"`            // id
	Name     string             `json:"name,omitempty"`    // of the manifest
	Release  string             `json:"version,omitempty"` // of the manifest
	Digest   string             `json:"digest,omitempty"`  // of the module: SHA-256 in hexadecimal
	Config   json.RawMessage    `json:"config,omitempty"`
	Grant    []string           `json:"grant,omitempty"` // capabilities that the operator grants; those by default are granted anyway
	State    string             `json:"state,omitempty"`
	Limits   abi.Limits         `json:"limits,omitzero"`
	Hooks    []abi.ManifestHook `json:"hooks,omitempty"` // of the manifest
	Env      bool               `json:"env,omitempty"`   // it has the names of environment variables
	Ticks    bool               `json:"ticks,omitempty"` // it has Tick and Synchronize
	Node     Node               `json:"node"`
	Features []string           `json:"features,omitempty"` // of the node, by name
	Proxy    string             `json:"proxy,omitempty"`    // version of the program
	Time     time.Time          `json:"time,omitzero"`      // when it began
}

// Node is the node, in the terms of the ABI's fields.
type Node struct {
	Host           string `json:"host,omitempty"`
	CgroupVersion  int    `json:"cgroup_version,omitempty"` // 1 or 2; 0 without cgroup files
	RuntimeName    string `json:"runtime_name,omitempty"`
	RuntimeVersion string `json:"runtime_version,omitempty"`
	Kernel         string `json:"kernel,omitempty"`
}

// Granted returns the capabilities of the header, with those that are granted by default.
func (h *Header) Granted() abi.CapabilitySet {
	all, _ := abi.CapabilitiesNamed(h.Grant)
	return all | abi.DefaultGrant()
}

// Call is one call of the plugin.
type Call struct {
	Hook      abi.Hook          `json:"-"`
	Line      int               `json:"-"` // of the file
	Name      string            `json:"hook"`
	Time      int64             `json:"time"` // of the event, in nanoseconds since the Unix epoch
	Pod       *Object           `json:"pod,omitempty"`
	Container *Object           `json:"container,omitempty"`
	Asked     []Asked           `json:"asked"`
	Handles   map[string]string `json:"handles,omitempty"` // what the handles in Asked stand for, such as pod(ID)
	Reject    *plugin.Rejection `json:"reject,omitempty"`  // the call was refused
	Error     string            `json:"error,omitempty"`   // why the plugin failed
	Fuel      int64             `json:"fuel,omitempty"`
	Took      time.Duration     `json:"took_ns,omitempty"`
	Dropped   Dropped           `json:"dropped,omitzero"` // since the beginning of the recording
}

// Object is what the call is about, for people. From UID and the container's name follow the plugin's random numbers.
type Object struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
	ID        string `json:"id,omitempty"`
}

// Title names the call for people.
func (c *Call) Title() string {
	title := c.Name
	if c.Pod != nil {
		title += " of " + c.Pod.Namespace + "/" + c.Pod.Name
		if c.Container != nil {
			title += "/" + c.Container.Name
		}
	}
	return title
}

// Dropped counts the calls that were not recorded, by reason.
type Dropped struct {
	Rate   int `json:"rate,omitempty"`   // more calls in a second than were to be recorded
	Size   int `json:"size,omitempty"`   // the call had more bytes than were to be recorded
	Reader int `json:"reader,omitempty"` // the reader was too slow
}

// All is how many they are.
func (d Dropped) All() int { return d.Rate + d.Size + d.Reader }

// Why a recording ended.
const (
	EndTime        = "time"        // it took as long as it was to take
	EndBytes       = "bytes"       // it had as many bytes as it was to have
	EndClosed      = "closed"      // another version replaced the plugin, or its files have gone
	EndStopped     = "stopped"     // the proxy stopped
	EndInterrupted = "interrupted" // who asked for it went away
)

// End is the last line.
type End struct {
	Reason  string  `json:"end"`
	Calls   int     `json:"calls"`
	Dropped Dropped `json:"dropped,omitzero"`
}

// Recording is all of a file.
type Recording struct {
	Header
	Calls []Call
	End   *End // nil: the file was cut
}

// What is read, in bytes.
const (
	maxLine = 16 << 20
	maxFile = MaxMax + maxLine // MaxMax is without the last line
)

// Read reads a recording. Errors name the line. What is after the last whole line of a file that was cut is left out.
func Read(in io.Reader) (*Recording, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	lines.Split(splitAfterEnd)
	if !lines.Scan() && lines.Err() != nil {
		return nil, fmt.Errorf("line 1: the file is no recording: %w", lines.Err())
	}
	r, first := &Recording{}, lines.Bytes()
	var of struct {
		Version *int `json:"recording"`
	}
	if err := json.Unmarshal(first, &of); err != nil || of.Version == nil {
		const want = `the first line must be an object with "recording": 1, as wasmproxy plugin record writes it`
		return nil, errors.New("line 1: the file is no recording: " + want)
	}
	if *of.Version != Version {
		const other = "line 1: the format is version %d, and this program reads version %d: use the program of the same version"
		return nil, fmt.Errorf(other, *of.Version, Version)
	}
	if err := strict(first, &r.Header); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if _, unknown := abi.CapabilitiesNamed(r.Grant); len(unknown) > 0 {
		return nil, fmt.Errorf("line 1: grant: unknown capability %q", unknown[0])
	}
	n, size := 1, len(first)
	for lines.Scan() {
		line := lines.Bytes()
		n, size = n+1, size+len(line)
		if size > maxFile {
			return nil, fmt.Errorf("line %d: the recording has more than %d bytes", n, maxFile)
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		err := r.add(line, n)
		if cut := !bytes.HasSuffix(line, []byte("\n")); err != nil && cut && r.End == nil {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: it has more than %d bytes", n+1, maxLine)
	}
	return r, lines.Err()
}

// splitAfterEnd is a bufio.SplitFunc of lines with their ends, so that a last line without one shows.
func splitAfterEnd(data []byte, atEOF bool) (advance int, token []byte, err error) {
	advance = bytes.IndexByte(data, '\n') + 1
	if advance == 0 && atEOF {
		advance = len(data)
	}
	if advance == 0 { // more is to be read
		return 0, nil, nil
	}
	return advance, data[:advance], nil
}

// add adds the line with this number.
func (r *Recording) add(line []byte, number int) error {
	if r.End != nil {
		return errors.New("it is after the last line, which has the key end")
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(line, &keys); err != nil {
		return err
	}
	switch {
	case keys["end"] != nil:
		r.End = &End{}
		return strict(line, r.End)
	case keys["recording"] != nil:
		return errors.New("a second first line: give each recording by itself")
	}
	c := Call{Line: number}
	if err := strict(line, &c); err != nil {
		return err
	}
	var known bool
	if c.Hook, known = abi.HookByName(c.Name); !known {
		return fmt.Errorf("hook: unknown hook %q", c.Name)
	}
	for _, a := range c.Asked { // a recording by hand need not name handles
		handle, kind := handleOf(&a.Question), a.Question.Kind
		if key := HandleKey(handle); handle != 0 && kind < abi.FirstHandle && c.Handles[key] == "" {
			c.nameHandle(handle, kind, key)
		}
	}
	r.Calls = append(r.Calls, c)
	return nil
}

// nameHandle notes what a handle stands for.
func (c *Call) nameHandle(handle, kind abi.Object, id string) {
	if c.Handles == nil {
		c.Handles = map[string]string{}
	}
	c.Handles[HandleKey(handle)] = kind.String() + "(" + id + ")"
}

// strict refuses keys that it does not know.
func strict(line []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is text after the object")
	}
	return nil
}

// encode writes a line, in a form that a terminal shows as it is.
func encode(line any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(line); err != nil {
		return nil, err
	}
	return plugin.PrintableJSON(b.Bytes()), nil
}
