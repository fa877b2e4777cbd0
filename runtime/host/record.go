package host

import (
	"encoding/json"
	"fmt"
	"slices"
)

// RecordFile is what uninstalling goes by. It is written before the first change.
const RecordFile = "/var/lib/wasmproxy/host.json"

const recordVersion = 1

// record is what the installation has replaced.
type record struct {
	Version int            `json:"version"`
	Listen  string         `json:"listen"`           // the proxy's endpoint
	Former  []string       `json:"former,omitempty"` // endpoints that the proxy had before, which kubelet's files may still have
	Runtime string         `json:"runtime"`          // kubelet's endpoint before
	Images  string         `json:"images,omitempty"` // its image service before, if it was another
	Dirs    []string       `json:"dirs,omitempty"`   // that were made, from the outer ones
	Files   []recordedFile `json:"files"`
}

// recordedFile is a file that was made or changed.
type recordedFile struct {
	Path    string `json:"path"`
	Kubelet bool   `json:"kubelet,omitempty"` // it is one of kubelet's
	Existed bool   `json:"existed"`
	Before  []byte `json:"before,omitempty"` // the copy of its whole content, unless it was a program
	After   string `json:"after"`            // SHA-256 of what was written
}

func (r *record) file(path string) *recordedFile {
	if i := slices.IndexFunc(r.Files, func(f recordedFile) bool { return f.Path == path }); i >= 0 {
		return &r.Files[i]
	}
	return nil
}

// loadRecord returns nil if there is none.
func loadRecord(root Root) (*record, error) {
	b, err := root.read(RecordFile)
	if b == nil || err != nil {
		return nil, err
	}
	r := new(record)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("reading the record of the installation %s: it is damaged: %w; put back a copy of it if you have one, or else remove it and run wasmproxy host install: the new record has the backend of the settings for kubelet's former endpoint", RecordFile, err)
	}
	if r.Version != recordVersion {
		return nil, fmt.Errorf("reading the record of the installation %s: its version is %d, this program knows %d: use the program that wrote it", RecordFile, r.Version, recordVersion)
	}
	return r, nil
}

// ours reports whether a value of kubelet's is the proxy's endpoint, or was it before.
func (r *record) ours(value string) bool {
	same := func(listen string) bool { return SameEndpoint(value, listen) }
	return value != "" && (same(r.Listen) || slices.ContainsFunc(r.Former, same))
}

// note adds planned changes. The copy from before the first installation stays, unless another program has written a file
// of kubelet again since, without the proxy's endpoint: then that is the copy.
func (r *record) note(dirs []string, changes []change) {
	for _, dir := range dirs {
		if !slices.Contains(r.Dirs, dir) {
			r.Dirs = append(r.Dirs, dir)
		}
	}
	for _, c := range changes {
		switch f := r.file(c.path); {
		case f == nil:
			add := recordedFile{Path: c.path, Kubelet: c.kubelet, Existed: c.before != nil, After: sum(c.after)}
			if !c.program {
				add.Before = c.before
			}
			r.Files = append(r.Files, add)
		case c.after == nil: // its removal may yet fail
		case !c.kubelet || sum(c.before) == f.After:
			f.After = sum(c.after)
		case !c.ours:
			f.Before, f.After = c.before, sum(c.after)
		} // else it was edited since: uninstalling leaves it to the operator
	}
}
