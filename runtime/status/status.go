// Package status has what the proxy tells of itself on the admin socket. It has types alone, which
// the proxy fills and commands read. Texts are one printable line each, and none holds a secret.
package status

import "time"

// Status is the state of a proxy at one moment.
type Status struct {
	Version  string    `json:"version"` // of the program
	PID      int       `json:"pid"`     // of the process that serves, in its own namespace
	Now      time.Time `json:"now"`
	Started  time.Time `json:"started"`
	NotReady []string  `json:"notReady,omitempty"` // why calls do not get what they are to get; empty if they do
	Bypass   Bypass    `json:"bypass"`
	Settings Settings  `json:"settings"`

	Listen      string  `json:"listen"`
	Connections int     `json:"connections"` // to Listen
	Peers       []Peer  `json:"peers"`       // whose connections these are, by PID
	Calls       uint64  `json:"calls"`       // of CRI that were answered since Started
	Created     uint64  `json:"created"`     // containers, by those of these calls that succeeded
	Queued      int     `json:"queued"`      // post hooks and other work after calls that have not ended
	Backend     Backend `json:"backend"`

	Plugins
	Store  Store  `json:"store"`
	Cgroup Cgroup `json:"cgroup"`
	Values Values `json:"values"`
	Guests Guests `json:"guests"`
	Lost   Lost   `json:"lost"`
}

// Settings are the active ones.
type Settings struct {
	File     string    `json:"file,omitempty"`     // empty: they are from flags and variables alone
	LastGood bool      `json:"lastGood,omitempty"` // the file could not be used at the start, and the last good settings are active
	Since    time.Time `json:"since,omitzero"`     // when the active ones were read, or the proxy first served with them
	Error    string    `json:"error,omitempty"`    // why the file, as it is now, cannot be used; empty if it can
	Changed  bool      `json:"changed,omitempty"`  // the file can be used, and has other settings than the active ones
}

// Peer is a process that is connected to the socket for calls, as the kernel tells it.
type Peer struct {
	PID         int       `json:"pid"` // as the proxy sees it; 0 if it does not
	UID         uint32    `json:"uid"`
	Program     string    `json:"program"` // the name that it gives itself, such as kubelet
	Since       time.Time `json:"since"`   // of the oldest connection
	Connections int       `json:"connections"`
}

// Backend is the container runtime.
type Backend struct {
	Endpoint  string `json:"endpoint"`
	Connected bool   `json:"connected"`
	Name      string `json:"name,omitempty"` // such as containerd; empty if it does not answer
	Version   string `json:"version,omitempty"`

	Disconnects uint64 `json:"disconnects"` // how often the connection was lost since Started

	Handlers []Handler `json:"handlers,omitempty"` // by name; none if the runtime does not tell
}

// Handler is a way in which the container runtime runs pods, which a RuntimeClass names.
type Handler struct {
	Name                    string `json:"name"` // empty: that of pods without a RuntimeClass
	RecursiveReadOnlyMounts bool   `json:"recursiveReadOnlyMounts"`
	UserNamespaces          bool   `json:"userNamespaces"`
}

// Bypass tells whether plugins are taken out of the way of calls.
type Bypass struct {
	On     bool      `json:"on"`
	File   string    `json:"file,omitempty"`   // that turns it on; empty if none is configured
	Since  time.Time `json:"since,omitzero"`   // when the file was written
	Reason string    `json:"reason,omitempty"` // the file's text
	Undone bool      `json:"undone,omitempty"` // no value of a plugin is left that is yet to be undone
}

// Store is the proxy's memory of pods and containers.
type Store struct {
	State      string `json:"state"` // empty: there is no plugin; filling, or filled
	Pods       int    `json:"pods"`
	Containers int    `json:"containers"`
}

// Cgroup is the node's cgroup file system.
type Cgroup struct {
	Root    string `json:"root,omitempty"`    // empty: no cgroup file is written
	Version int    `json:"version,omitempty"` // 1 or 2
	Driver  string `json:"driver,omitempty"`  // the container runtime's: cgroupfs or systemd; empty if it has not told
}

// Values are what the ledger has.
type Values struct {
	StateDir string `json:"stateDir,omitempty"` // empty: a restart of the proxy loses them
	Objects  int    `json:"objects"`            // pods and containers with a value
	Wanted   int    `json:"wanted"`             // values that plugins want
	Saved    bool   `json:"saved"`              // StateDir and data-dir have what they are to have

	NotHeld map[string]int    `json:"notHeld,omitempty"` // values that do not hold, by the ids of plugins; "": those of kubelet
	Ignored map[string]string `json:"ignored,omitempty"` // why records were ignored, by the UIDs of pods that have not ended; "": of which pod is not known
}

// Guests are the instances of WebAssembly plugins.
type Guests struct {
	Memory int64 `json:"memory"` // bytes
	Limit  int64 `json:"limit"`  // bytes
}

// Lost is what sinks could not take since Started.
type Lost struct {
	AuditLines int64 `json:"auditLines"`
	Spans      int64 `json:"spans"` // of traces
}

// Plugins is the state of all plugins at one moment. It holds no configuration.
type Plugins struct {
	Generation uint64   `json:"generation"` // counts the sets of active and refusing plugins that calls have met
	Plugins    []Plugin `json:"plugins"`    // in the order of the chain
}

// PluginState is what calls meet of a plugin.
type PluginState string

// The states of a plugin.
const (
	Active   PluginState = "active"   // calls go to it
	Refusing PluginState = "refusing" // it is not loaded, and its hooks are refused
	Inactive PluginState = "inactive" // it is not loaded, and calls pass
	Bypassed PluginState = "bypassed" // no plugin is loaded while the bypass lasts
	Disabled PluginState = "disabled" // its file switches it off
)

// Plugin is the state of one plugin.
type Plugin struct {
	ID     string      `json:"id"`
	File   string      `json:"file"` // the module, or the JSON file that registers a hook server or names a module
	Kind   string      `json:"kind"` // "wasm" or "hook server"
	State  PluginState `json:"state"`
	Since  time.Time   `json:"since,omitzero"`  // of State
	Hooks  []string    `json:"hooks,omitempty"` // that it is called in, or that are refused
	Policy string      `json:"failurePolicy,omitempty"`
	DryRun bool        `json:"dryRun,omitempty"`

	Failure *FileFailure `json:"failure,omitempty"` // nil if it is as its files say, or is on its way to be

	Probation time.Time `json:"probation,omitzero"` // when that of the active version ends; zero if it has none, or has passed

	Shadow *Shadow `json:"shadow,omitempty"` // nil if it has none

	Active  *Version `json:"active,omitempty"`  // nil unless State is Active
	Pending *Version `json:"pending,omitempty"` // what the files describe now, if that is not the active version

	Breaker      string    `json:"breaker,omitempty"` // closed, open or half-open; empty if the plugin has none
	BreakerUntil time.Time `json:"breakerUntil,omitzero"`

	Instances int   `json:"instances"` // of all its versions, and its shadow
	Memory    int64 `json:"memory"`    // bytes, of these
	Counts
}

// FileFailure says that a plugin is not as its files say.
type FileFailure struct {
	Error     string    `json:"error"`          // names the file, if it is bad
	Since     time.Time `json:"since,omitzero"` // zero if that is not known, since no proxy runs
	Meanwhile string    `json:"meanwhile"`      // what runs instead
}

// Shadow is the state of another version of a plugin, which is called beside it and changes nothing.
type Shadow struct {
	Version  string            `json:"version,omitempty"` // of its manifest; empty if that is not known
	Digest   string            `json:"digest,omitempty"`  // of the module, SHA-256 in hex
	State    string            `json:"state"`             // queued, loading, failed or active
	Since    time.Time         `json:"since"`             // of State
	Reason   string            `json:"reason,omitempty"`  // why it is not loaded
	Breaker  string            `json:"breaker,omitempty"` // closed, open or half-open
	Outcomes map[string]uint64 `json:"outcomes,omitempty"`
}

// Version is the state of one version of a plugin.
type Version struct {
	Name    string `json:"name,omitempty"`    // of its manifest; empty if that is not known
	Version string `json:"version,omitempty"` // likewise
	Digest  string `json:"digest,omitempty"`  // of the module, SHA-256 in hex; empty for a hook server

	Settings string    `json:"settings,omitempty"` // SHA-256 in hex of the JSON file; empty without one
	State    string    `json:"state"`              // queued, loading, ready, failed or active
	Since    time.Time `json:"since"`              // of State
	Reason   string    `json:"reason,omitempty"`   // of its last failure
}

// Counts are of the calls of a plugin since the proxy was started, or the plugin was installed.
type Counts struct {
	Calls      uint64 `json:"calls"`
	Failures   uint64 `json:"failures"`   // with those that its circuit breaker did not let through
	Refusable  uint64 `json:"refusable"`  // calls that the plugin could refuse: not those of Tick and of hooks after calls
	Rejections uint64 `json:"rejections"` // of these, those that it refused
	Exempted   uint64 `json:"exempted"`   // failures with policy Fail and refusals that were ignored in exempt namespaces

	Conflicts     uint64 `json:"conflicts"`     // it wanted another value than an earlier plugin
	Fights        uint64 `json:"fights"`        // cgroup files that are left alone since something else overwrites them
	WriteFailures uint64 `json:"writeFailures"` // writes of its values to cgroup files that failed

	P50       float64  `json:"p50Seconds"` // estimates of the time of a call
	P99       float64  `json:"p99Seconds"`
	LastError *Failure `json:"lastError,omitempty"`
}

// Failure is one that a plugin had.
type Failure struct {
	At    time.Time `json:"at"`
	Hook  string    `json:"hook"`
	Class string    `json:"class,omitempty"` // such as timeout
	Error string    `json:"error"`
}
