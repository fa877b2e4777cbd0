// Package native joins package sdk and package sdktest when a plugin is built for the
// machine that tests it, where there is no WebAssembly host to import functions from.
// Builds to WebAssembly do not contain it.
package native

import (
	"log/slog"
	"math/rand/v2"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Guest is the plugin, set by package sdk.
var Guest struct {
	Declared  func() (declared abi.CapabilitySet, unknown []string)
	Hooks     func() abi.HookSet
	Configure func() int32
	Hook      func(abi.Hook) int32
}

// Current is the call that runs, nil between calls. Package sdktest sets it, and sees to
// it that calls do not overlap, as they never do in one guest.
var Current *Call

// Deleted is the value in [Call.Changes] of what a plugin deletes.
const Deleted = "(deleted)"

// Withdrawn is the value in [Call.Changes] of what a plugin has set in an earlier call, and withdraws.
const Withdrawn = "(withdrawn)"

// Call is one call of a plugin: what the host functions answer, and what they are asked for.
type Call struct {
	Hook      abi.Hook // 0 in wp_configure
	Time      int64    // nanoseconds since the Unix epoch
	Has       abi.CapabilitySet
	Objects   map[abi.Object]*Object       // the event's own, and all that have handles
	Files     map[string]map[string]string // what can be read of cgroups, by object, id or QoS class, and file
	Cgroup    int                          // version of the node's cgroup file system, 0 if there is none
	Request   []byte                       // nil if there is none
	Config    string
	Log       func(slog.Level, string)
	JSON      func(any) string // of a list or record, as Changes has it
	Random    *rand.ChaCha8
	KV        map[string]string // read and written
	Metrics   map[string]int64  // likewise
	Earlier   map[string]string // what an earlier plugin has asked for, by target
	Changes   map[string]string // what the plugin asks for, by target
	Held      map[string]bool   // what the plugin has set in earlier calls and holds, by target with the object's id
	Holds     map[string]bool   // likewise after this one; written
	Conflict  bool              // the plugin was refused something because of Earlier
	Rejection *Rejection        // nil unless the plugin refuses the call
	Failure   string            // why the plugin fails, in its own words
}

// Object is a pod, a container, the node or the event.
type Object struct {
	Kind   abi.Object
	Own    bool              // it is the event's own
	Pod    *Object           // that a container is in
	Fields map[abi.Field]any // int64, string, map[string]string or []string, by the field's type; or the abi.Errno of a read
}

// ID returns the id of a pod or container.
func (o *Object) ID() string { return o.Text(abi.PodID) } // ContainerID is the same number

// Text returns a field of type abi.String, "" if it is not there.
func (o *Object) Text(f abi.Field) string {
	s, _ := o.Fields[f].(string)
	return s
}

// Rejection is a plugin's refusal of the call. It is an error.
type Rejection struct {
	Code   uint32 `json:"code"` // abi.RejectInvalidArgument or one of the others
	Reason string `json:"reason"`
}

// Error returns the reason.
func (r *Rejection) Error() string { return r.Reason }
