package observe

import (
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
)

// The names of fields are also the names of the log's attributes, in snake case. A field with
// the tag log:"-" is no attribute.

// Object is the pod, container or image that an event is about. What is not known is empty.
type Object struct {
	Namespace, Pod, PodID  string
	Container, ContainerID string
	Image                  string
}

// About implements Subject.
func (o Object) About() Object { return o }

// Subject is something that can tell which object it is about. Object is one.
type Subject interface{ About() Object }

// ObjectOf returns the object that v is about; none if v is not a Subject.
func ObjectOf(v any) Object {
	if s, ok := v.(Subject); ok {
		return s.About()
	}
	return Object{}
}

// What many events have, and nothing else.
type (
	withErr struct {
		occurrence
		Err error
	}
	withPlugin struct {
		occurrence
		Plugin string
	}
	withPluginErr struct {
		occurrence
		Plugin string
		Err    error
	}
	withFileErr struct {
		occurrence
		File string
		Err  error
	}
)

// Serving says that the proxy answers calls.
type Serving struct {
	occurrence
	Listen, Backend string
}

// CallFinished says that a CRI call has been answered.
type CallFinished struct {
	occurrence
	Method   string // full name; of a service that is not CRI's it is the caller's own text
	Code     string // of the status, as gRPC spells it
	Route    Route
	Start    time.Time     `log:"-"`
	Duration time.Duration // from the request until its answer was handed to gRPC
	Backend  time.Duration // of which the container runtime had this much; of a stream, all
	Plugins  time.Duration // of which plugins had this much. Post hooks run after the answer
}

// Route is how a call went through the proxy.
type Route string

// The routes.
const (
	Passed   Route = "passed"   // its bytes were copied
	Followed Route = "followed" // the store read it
	Hooked   Route = "hooked"   // plugins have a hook in it
)

// CallRefused says that a call was answered with an error because of a plugin.
type CallRefused struct {
	occurrence
	Plugin string
	Hook   abi.Hook
	Object
	Code, Reason string // of the status that the caller got
}

// CallExempted says that a call went on although a plugin refused it, or failed under policy
// Fail, since the namespace of its pod is exempt. The plugin's changes are dropped.
type CallExempted struct {
	occurrence
	Plugin string
	Hook   abi.Hook
	Object
	Reason string
}

// HooksSkipped says that a call went on without its hooks.
type HooksSkipped struct {
	occurrence
	Method string
	Hook   abi.Hook
	Err    error
}

// ChangesNotSent says that plugins changed fields that the container runtime's API does not have.
type ChangesNotSent struct {
	occurrence
	Method string
	Object
	Fields []string
}

// PostHooksLate says that a call did not wait any longer for earlier post hooks and writes of
// its object.
type PostHooksLate struct {
	occurrence
	Method string
	Hook   abi.Hook
	Object
	Err error
}

// PostHookDropped says that a post hook was not called since too many wait.
type PostHookDropped struct {
	occurrence
	Hook abi.Hook
	Object
}

// PostHookFailed says that a post hook ended with an error of the chain.
type PostHookFailed struct {
	occurrence
	Hook abi.Hook
	Object
	Err error
}

// Panicked says that code of the proxy panicked, and that only the work under way was lost.
type Panicked struct {
	occurrence
	During string // the work
	Plugin string
	Hook   abi.Hook
	Object
	Method string // of the CRI call
	Panic  string
	Stack  string
}

// PanickedAnswer is what the caller gets whose call was lost by a panic.
const PanickedAnswer = "wasmproxy failed while it handled this call; its log has the stack"

// HookCalled says that a plugin was called in a hook, or would have been: see Outcome.
type HookCalled struct {
	occurrence
	Plugin string
	Hook   abi.Hook
	Subject
	Start     time.Time     `log:"-"`
	Duration  time.Duration // with waiting for an instance
	Fuel      int64         // units of fuel that a guest used
	HostCalls int64         // calls of host functions by a guest
	Changes   int           // fields that the plugin changed
	Outcome   Outcome
	Class     Class // of a failure; empty unless Outcome is Failed
	Err       error // nil if Outcome is OK
}

// Outcome is the result of a call of a plugin, whatever its failure policy makes of it.
type Outcome string

// The outcomes.
const (
	OK        Outcome = "ok"
	Rejected  Outcome = "rejected"   // the plugin refused the call
	Failed    Outcome = "failed"     // with an error, a limit, a timeout or a conflict
	NotCalled Outcome = "not called" // the plugin's circuit breaker is open
)

// Class is a kind of failures of a plugin in a hook.
type Class string

// The classes.
const (
	ClassError      Class = "error"       // the plugin said that it failed, or answered what it may not
	ClassTrap       Class = "trap"        // its code ended with a trap, such as a panic
	ClassTime       Class = "time"        // it, or all plugins of the call, had no more time
	ClassFuel       Class = "fuel"        // it had no more fuel
	ClassHostCalls  Class = "host_calls"  // it called the host too often
	ClassConflict   Class = "conflict"    // it wanted a field that an earlier plugin has set
	ClassBusy       Class = "busy"        // it did not come to run: others did
	ClassAway       Class = "away"        // it is another process that cannot be reached
	ClassNotLoaded  Class = "not_loaded"  // it is not loaded, and its hooks are refused
	ClassCallerGone Class = "caller_gone" // its caller went away before it ended
)

// FunctionCalled says that the host called a function of a guest outside hooks, such as
// wp_configure.
type FunctionCalled struct {
	occurrence
	Plugin, Function string
	Duration         time.Duration
	Fuel, HostCalls  int64
}

// FieldChanged says that a plugin changed a field, and the call goes on with its value.
type FieldChanged struct {
	occurrence
	Plugin string
	Hook   abi.Hook
	Object
	OtherName, OtherID string // of the pod or container that a change of another object is about
	Field              string // such as container.annotations["a"]
	Previous           string // the value before, hidden for annotations, labels and env; empty if there was none, and of lists, sets and files
	Value              string // empty if the plugin deletes the entry, hidden for env
}

// DryRunChange is a FieldChanged of a plugin in dry-run, whose changes are not applied.
type DryRunChange FieldChanged

// DryRunRejection says that a plugin in dry-run would have refused the call.
type DryRunRejection CallExempted

// ShadowOutcome is what came of a call of a plugin's shadow beside that of the plugin.
type ShadowOutcome string

// The outcomes.
const (
	ShadowSame      ShadowOutcome = "same"      // both want the same
	ShadowDifferent ShadowOutcome = "different" // the shadow wants something else, and did not refuse the call
	ShadowFailed    ShadowOutcome = "failed"    // the shadow failed
	ShadowRefused   ShadowOutcome = "refused"   // the shadow would have refused the call, other than the plugin
)

// ShadowCalled says that a plugin's shadow was called, and what came of it.
type ShadowCalled struct {
	occurrence
	Plugin string
	Hook   abi.Hook
	Object
	Outcome ShadowOutcome
}

// HostCallRefused says that a host function answered a guest with an error.
type HostCallRefused struct {
	occurrence
	Plugin string
	Hook   abi.Hook
	Object
	Function, Target string // Target is what the function was called for, as far as its arguments tell
	Err              string
}

// Conflict says that a plugin wanted another value for a field that an earlier one has set.
// The earlier one's value stays.
type Conflict struct {
	occurrence
	Plugin, First string
	Hook          abi.Hook
	Object
	Field   string
	Dropped bool // all changes of the plugin in this hook are dropped, since it failed
}

// PluginFailed says that a plugin failed in a hook, and that the call goes on without it.
type PluginFailed struct {
	occurrence
	Plugin string
	Hook   abi.Hook
	Object
	Err error
}

// PluginLog is a line of a plugin's own: what it logged or printed.
type PluginLog struct {
	occurrence
	Level    Level `log:"-"`
	Plugin   string
	Hook     abi.Hook
	Function string // of the guest, outside hooks
	Object
	Text string
}

// PluginLogCut says that lines of a plugin were dropped, since a call may log 64 KiB.
type PluginLogCut struct {
	occurrence
	Plugin   string
	Hook     abi.Hook
	Function string // of the guest, outside hooks
	Object
	DroppedBytes int
}

// BreakerOpened says that a plugin is not called until a time since it failed too often.
type BreakerOpened struct {
	occurrence
	Plugin string
	Until  time.Time
	Faults int   // in a row
	Err    error // the last of them
}

// BreakerClosed says that a plugin is called again.
type BreakerClosed struct {
	occurrence
	Plugin string
	Faults int // in a row, until it was well
}
