package observe

import (
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
)

// BackendConnected says that there is a connection to the container runtime.
type BackendConnected struct {
	occurrence
	Backend string
}

// BackendLost says that there is no connection to the container runtime.
type BackendLost BackendConnected

// BackendUnsteady says that the container runtime ends connections soon after it has accepted
// them. There is one event a minute.
type BackendUnsteady struct {
	occurrence
	Backend string
	Lost    int           // connections that the event stands for
	Lived   time.Duration // the last of them
}

// StoreFilled says that the store of pods and containers holds all of the container runtime.
type StoreFilled struct {
	occurrence
	Pods, Containers int
	Took             time.Duration
}

// StoreNotFilled says that the container runtime could not be asked for its pods. There is one
// event a minute.
type StoreNotFilled struct {
	occurrence
	Failures int // that the event stands for
	Err      error
}

// ObjectsUnread says that the container runtime lists pods or containers that it cannot describe. The
// store has them as they were, or as the list tells.
type ObjectsUnread struct {
	occurrence
	Again time.Duration // until the runtime is asked again
	Err   error         // how many, and why the first
}

// StoreNotUpdated says that an answer of the container runtime could not be decoded.
type StoreNotUpdated struct {
	occurrence
	Method string
	Err    error
}

// ReadThroughFailed says that the container runtime could not be asked about an object that
// the store does not have.
type ReadThroughFailed struct {
	occurrence
	Method, ID string
	Err        error
}

// CgroupFileWritten says that a cgroup file was written for a plugin.
type CgroupFileWritten struct {
	occurrence
	Plugin      string
	Hook        abi.Hook // in which the plugin asked for the value
	Object               // whose file it is
	File, Value string
}

// CgroupFileFailed says that a cgroup file could not be written for a plugin, or that kubelet's
// value could not be written back after it.
type CgroupFileFailed struct {
	occurrence
	Plugin      string   // empty if kubelet's value was to come back
	Hook        abi.Hook // in which the plugin asked for the value
	Object               // whose file it is
	File, Value string
	Err         error
}

// CgroupFileRepaired says that the value of a plugin was written again since something else had
// overwritten it.
type CgroupFileRepaired struct {
	occurrence
	Plugin      string
	Object      // whose file it is
	File, Value string
	Found       string // what it held, or holds
	Last        string // call or reload that showed it, or was before; empty for a scan, or if there was none
}

// CgroupFileFought says that something else has overwritten the value of a plugin again and
// again, and that the file is left alone.
type CgroupFileFought CgroupFileRepaired

// PodLimitStays says that a plugin has given a container a higher limit than its pod has, which has no
// effect: the pod has resources of its own, or containers to come, and its limit is not lifted.
type PodLimitStays struct {
	occurrence
	Plugin string
	Object        // the container
	File   string // of the pod
	Value  string // what it holds
}

// CgroupFileUndone says that kubelet's value was written back, since no plugin wants another.
type CgroupFileUndone struct {
	occurrence
	Object      // whose file it is
	File, Value string
}

// FieldsNotReset says that the container runtime could not be asked for kubelet's values of
// resources that plugins had changed, or for a plugin's that the kernel has lost.
type FieldsNotReset struct {
	occurrence
	Object
	Fields []string // of CRI
	Err    error
}

// StateIgnored says that a state file was not read, or lines of the journal. The values of its pods stay as they are, and
// their owners are not known; the durable values of its plugin are lost.
type StateIgnored withFileErr // File is its name in the state directory

// StateNotSaved says that a state file could not be written. There is one event until it can.
type StateNotSaved withFileErr // File is its name in the state directory

// LastGoodIgnored says that the last good version of a plugin was not read: there is none, as if there never was.
type LastGoodIgnored withErr // Err names the file

// LastGoodNotSaved says that the last good version of a plugin could not be saved. There is one event until it can.
type LastGoodNotSaved withErr // Err names the file

// SettingsRefused says that the settings file could not be used at a start, and that the last good settings are active.
type SettingsRefused struct {
	occurrence
	File  string
	Since time.Time // when the proxy first served with the active ones
	Err   error     // names what is wrong in the file
}

// SettingsNotSaved says that the active settings could not be saved as good. There is one event until they are.
type SettingsNotSaved withErr // Err names the file

// ValuesDropped says that saved values of a plugin were dropped.
type ValuesDropped struct {
	occurrence
	Plugin string
	Values int // how many
	Reason string
}

// AdminSocketFailed says that the admin socket could not be made, or that its server has ended.
// It is tried again; there is one event until it succeeds.
type AdminSocketFailed struct {
	occurrence
	Socket string
	Err    error
}

// StatusSocketFailed is AdminSocketFailed of the status socket.
type StatusSocketFailed AdminSocketFailed

// MetricsListenFailed says that metrics cannot be served on a TCP address, or that the server has
// ended. It is tried again; there is one event until it succeeds.
type MetricsListenFailed struct {
	occurrence
	Address string
	Err     error
}

// NodeFeaturesFailed says that the file of features for Node Feature Discovery cannot be written. It
// is tried again; there is one event until it succeeds.
type NodeFeaturesFailed withFileErr

// ServingMetrics says that metrics are served on a TCP address.
type ServingMetrics struct {
	occurrence
	Address string
}

// TracesOff says that no traces are made, since a variable of the environment is not valid.
type TracesOff withErr

// SpansNotSent says that spans of calls could not be sent to the collector of traces, and are
// lost. There is one event a minute.
type SpansNotSent struct {
	occurrence
	Spans int // that the event stands for
	Err   error
}

// AuditLinesLost says that lines of the audit log were lost. There is one event a minute.
type AuditLinesLost struct {
	occurrence
	Lines int // that the event stands for
	Err   error
}

// AuditLinesLimited says that lines of the audit log about a plugin were left out, since it made more
// than a plugin may. There is one event a minute.
type AuditLinesLimited struct {
	occurrence
	Plugin string
	Lines  int // that the event stands for
}

// SystemdConnected says that there is a connection to the node's systemd.
type SystemdConnected struct {
	occurrence
	Version int
}

// SystemdUnavailable says that values of systemd's units are only written to cgroup files,
// because there is no connection to systemd. There is one event until the next connection.
type SystemdUnavailable withErr

// SystemdPropertyRefused says that systemd did not take a property whose value is in the unit's
// cgroup file.
type SystemdPropertyRefused struct {
	occurrence
	Unit, Property string
	Err            error
}

// SystemdReloaded says that systemd has read its units again and has written their cgroup
// files.
type SystemdReloaded struct{ occurrence }

// SuspendFailed says that values in cgroup files that may be in the way of an update could not
// be cleared before it.
type SuspendFailed struct {
	occurrence
	Object
	Err error
}

// RestoreFailed says that values in cgroup files could not be written back after an update.
type RestoreFailed SuspendFailed

// DeferredUpdateFailed says that a plugin's change of a pod or container other than that of its
// hook could not be carried out.
type DeferredUpdateFailed struct {
	occurrence
	Plugin string
	Hook   abi.Hook
	Object // the one to change
	Field  string
	Err    error
}
