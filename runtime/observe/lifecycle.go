package observe

import "time"

// PluginLoading says that the load of a plugin's files has begun.
type PluginLoading withPlugin

// PluginLoaded says that a plugin is active that was not there before.
type PluginLoaded struct {
	occurrence
	Plugin        string
	Name, Version string   // of the manifest
	Hooks         []string // of the manifest
	Took          time.Duration

	Digest         string // of the module, SHA-256 in hex; empty for a hook server
	SettingsDigest string // of the JSON, likewise; empty without one
}

// PluginReplaced says that a new version of a plugin is active in place of the one before it.
type PluginReplaced struct {
	PluginLoaded
	Previous string // the version that it replaces
}

// PluginSettingsChanged says that the JSON of an active plugin has changed, and counts, in what needs no load: its policy
// and whether it is in dry-run, for instance.
type PluginSettingsChanged struct {
	occurrence
	Plugin         string
	SettingsDigest string // of the JSON, SHA-256 in hex; empty without one
}

// PluginRejected says that a plugin's files could not be loaded.
type PluginRejected struct {
	occurrence
	Plugin    string
	Meanwhile Meanwhile
	Previous  string   // the version that stays active
	Hooks     []string // that are refused
	Err       error
}

// Meanwhile is what calls meet while a plugin's files cannot be loaded.
type Meanwhile string

// The states.
const (
	PluginSkipped  Meanwhile = "calls pass without it"
	PreviousActive Meanwhile = "the previous version stays active"
	CallsRefused   Meanwhile = "calls are refused in its hooks"
)

// ShadowNotLoaded says that the shadow of a plugin cannot be loaded. The plugin itself is as it was.
type ShadowNotLoaded withPluginErr

// ProbationBegun says that a new version of a plugin is active, and that the node goes back to the one before if it fails.
type ProbationBegun struct {
	occurrence
	Plugin string
	Ends   time.Time
}

// ProbationPassed says that a version of a plugin has not failed in its probation, and is the last good one now.
type ProbationPassed withPlugin

// ProbationFailed says that a version of a plugin has failed in its probation, and that the node goes back to the one before.
// It is not loaded again.
type ProbationFailed struct {
	occurrence
	Plugin string
	Reason string
}

// ProbationIgnored says that what an earlier process knew of probations was not read: new versions count as those that have passed.
type ProbationIgnored withErr // Err names the file

// ProbationNotSaved says that what is known of probations could not be saved. There is one event until it can.
type ProbationNotSaved withErr // Err names the file

// TickStopped says that a limit has stopped a plugin in a Tick after it was done with some pods. What it wants of them is done.
type TickStopped struct {
	occurrence
	Plugin  string
	Changes int   // that are kept
	Class   Class // of the limit
	Err     error
}

// PluginRemoved says that a plugin's files are gone, or switch it off, and that no new call uses it.
type PluginRemoved struct {
	occurrence
	Plugin   string
	Disabled bool // its JSON switches it off
}

// PluginClosed says that the last call that used a version of a plugin has ended.
type PluginClosed withPlugin

// CloseFailed says that something could not be closed, a plugin or, at shutdown, another part.
type CloseFailed withPluginErr

// GenerationActive says which plugins new calls use from now on.
type GenerationActive struct {
	occurrence
	Plugins  []string
	Refusing []string // plugins that are not loaded, and for which calls are refused
}

// NoPlugins says that there is no plugin any more, and that every call passes as it came.
type NoPlugins struct{ occurrence }

// BypassOn says that plugins have been taken out of the way: every call passes as it came, and
// their values are undone.
type BypassOn struct {
	occurrence
	File   string    // that turned it on
	Reason string    // the file's text
	Since  time.Time // when the file was written
}

// BypassLasts says that the bypass is still on. There is one event an hour.
type BypassLasts BypassOn

// BypassOff says that plugins are loaded again, as at a start.
type BypassOff struct {
	occurrence
	File  string
	Since time.Time // when the bypass began
}

// BypassUnknown says that the bypass file cannot be looked for. The bypass stays as it is; there
// is one event until the file can be looked for.
type BypassUnknown struct {
	occurrence
	On  bool
	Err error
}

// SynchronizeIncomplete says that a plugin became active before it was synchronized with all
// pods. It is synchronized with the others while it is active.
type SynchronizeIncomplete struct {
	occurrence
	Plugin string
	Left   int // pods
}

// CapabilityMissing says that a plugin declares capabilities that it is not granted.
type CapabilityMissing struct {
	occurrence
	Plugin       string
	Capabilities []string
	Remedy       string // the line that grants them
}

// CapabilityUnknown says that a plugin declares capabilities that this version does not know.
type CapabilityUnknown struct {
	occurrence
	Plugin       string
	Capabilities []string
}

// GrantUnused says that the operator grants capabilities that the plugin does not declare.
type GrantUnused CapabilityUnknown

// HooksUnknown says that runtime-hooks names hooks that the plugin does not have.
type HooksUnknown struct {
	occurrence
	Plugin string
	Hooks  []string
}

// HooksNotInDocker says that a plugin has hooks for which mode docker has no requests.
type HooksNotInDocker HooksUnknown

// MatchNeverFits says that a plugin is never called in a hook, since its match asks for what
// no image has.
type MatchNeverFits struct {
	occurrence
	Plugin  string
	Hook    string
	Key     string // of the match
	MatchOf string // the file or the manifest
}

// InstanceMissing says that a plugin has no instance ready, and that the next call makes one.
type InstanceMissing withPluginErr

// FileRejected says that a file in a plugin directory is not a plugin's.
type FileRejected withErr // Err names the file

// FileAlone says that a JSON file in a plugin directory describes no plugin, since there is no module
// beside it, or the module is another file's.
type FileAlone withErr // Err names the file

// DirectoryNotRead says that a plugin directory could not be read: plugins in it stay as they are.
type DirectoryNotRead withErr // Err names the directory

// DirectoryNotMade says that a plugin directory is missing and could not be made.
type DirectoryNotMade struct {
	occurrence
	Dir string
	Err error
}

// InotifyUnavailable says that plugin files are read every second, since inotify cannot be used.
type InotifyUnavailable DirectoryNotMade

// WatchFailed says that inotify told of an error. All files are read again.
type WatchFailed withErr

// EngineStarted says which of wazero's engines runs WebAssembly.
type EngineStarted struct {
	occurrence
	Engine string
}

// EngineSlow says that plugins are interpreted since the node does not allow compiled code.
type EngineSlow struct{ occurrence }

// VariableIgnored says that an environment variable has the form of a setting, and that there
// is no such setting.
type VariableIgnored struct {
	occurrence
	Variable string
}

// SelfCheckFailed says that the proxy did not answer itself, and that systemd, which watches
// the process, got no sign of life this time.
type SelfCheckFailed withErr

// NotifyFailed says that a message to systemd could not be sent.
type NotifyFailed withErr

// Stopping says that the proxy takes no new calls, and lets those in flight finish.
type Stopping struct {
	occurrence
	DrainTimeout time.Duration // that they have
}

// ShutdownLate says that work did not end in the time that it had at shutdown.
type ShutdownLate struct {
	occurrence
	Of    string        // the work
	After time.Duration // that it had
}

// Served has the counts of the whole run, at its end.
type Served struct {
	occurrence
	Calls               map[string]uint64           // by method without its service; those that CRI does not have are "other"
	Hooks, HookFailures map[string]uint64           // calls of plugins, by hook
	Metrics             map[string]map[string]int64 // of plugins, by plugin and name
}
