// Package status has what the proxy tells of itself on the admin socket. It has types alone, which
// the proxy fills and commands read. Texts are one printable line each, and none holds a secret.
package status

import "time"

// Bypass tells whether plugins are taken out of the way of calls.
type Bypass struct {
	On     bool      `json:"on"`
	File   string    `json:"file,omitempty"`   // that turns it on; empty if none is configured
	Since  time.Time `json:"since,omitzero"`   // when the file was written
	Reason string    `json:"reason,omitempty"` // the file's text
	Undone bool      `json:"undone,omitempty"` // no value of a plugin is left that is yet to be undone
}
