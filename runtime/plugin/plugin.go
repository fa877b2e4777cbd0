package plugin

import (
	"context"
	"iter"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Plugin is one loaded plugin. It is safe for concurrent use until Close is
// called, which happens after the last Call has returned.
type Plugin interface {
	// Manifest says what the plugin is and which hooks it wants. It does not change.
	Manifest() abi.Manifest
	// Call passes ev to the plugin and collects what it wants changed in adj.
	// An error is the plugin's fault, a *Rejection its decision to refuse the
	// call; adj counts for nothing then. It returns soon after ctx is done. The
	// plugins of the call share the budget, which may be nil.
	Call(ctx context.Context, budget *Budget, ev Event, adj *Adjustment) error
	// Close frees what the plugin holds.
	Close(ctx context.Context) error
}

// Event is what a plugin sees: one hook of one CRI call, with the pod and
// container that it is about as earlier plugins of the chain left them. The
// getters are lazy, cost no decoding, and answer abi.NotFound for what the
// event does not have.
type Event interface {
	Hook() abi.Hook
	// Time is when the call arrived; it does not move while the event lives.
	Time() time.Time
	// Int64 returns a field of type abi.Int64.
	Int64(abi.Object, abi.Field) (int64, abi.Errno)
	// Text returns a field of type abi.String. It need not be UTF-8.
	Text(abi.Object, abi.Field) (string, abi.Errno)
	// Lookup returns one entry of a field of type abi.Map; of a name that
	// occurs more than once, the last. The key is the caller's and not to be kept.
	Lookup(o abi.Object, f abi.Field, key string) (string, abi.Errno)
	// Entries returns a field of type abi.Map: in the order of the request
	// where it has one (env, which may repeat a name), else sorted by key.
	Entries(abi.Object, abi.Field) (iter.Seq2[string, string], abi.Errno)
	// List returns a field of type abi.List or abi.Set; of a Set of records, each
	// record as abi.AppendEntries writes it. It may have to ask the runtime about an image, which ends with ctx.
	List(context.Context, abi.Object, abi.Field) ([]string, abi.Errno)
	// Raw returns the request's protobuf, without what has does not allow to see.
	Raw(has abi.CapabilitySet) ([]byte, abi.Errno)
	// ReadFiles tells each of some files of the object's cgroup in turn, by their v2 names. It
	// may have to ask the runtime where the cgroup is, which ends with ctx.
	ReadFiles(ctx context.Context, o abi.Object, files []string, each func(text string, errno abi.Errno))
	// Kind returns abi.Pod or abi.Container for a handle of the event, and what is
	// none as it is.
	Kind(abi.Object) abi.Object
	// Own reports whether a handle stands for the event's own pod or container.
	Own(abi.Object) bool
	// Within reports whether a match accepts what a handle stands for, as the store has it now; nil accepts all.
	Within(handle abi.Object, match *abi.Match) bool
	// Find looks a pod or container up in the store, which the match must accept as in Within; kind is
	// abi.ByPodID and its like. The handle is valid while the event is, and the same whenever
	// the same object is looked up.
	Find(kind int32, name string, match *abi.Match) (abi.Object, abi.Errno)
	// Containers returns handles of the containers of a pod, or of the node, that the match accepts, sorted
	// by id, and how many it went through.
	Containers(of abi.Object, match *abi.Match) (handles []abi.Object, through int, errno abi.Errno)
	// Pods returns handles of the pods of a namespace, of all if it is "", that the match accepts, sorted by
	// id, and how many it went through.
	Pods(namespace string, match *abi.Match) (handles []abi.Object, through int, errno abi.Errno)
	// Secrets returns the values of environments and the registry credentials that a
	// plugin which has these capabilities can have read of the event by now, without
	// those of an earlier call of Secrets, which returned next; 0 is for the first.
	Secrets(has abi.CapabilitySet, from int) (values []string, next int)
}

// ReadFile returns one file of [Event].ReadFiles.
func ReadFile(ctx context.Context, ev Event, o abi.Object, file string) (text string, errno abi.Errno) {
	ev.ReadFiles(ctx, o, []string{file}, func(t string, e abi.Errno) { text, errno = t, e })
	return text, errno
}

// FailurePolicy says what a plugin's failure does to the call that it hooks.
// The zero value is Ignore.
type FailurePolicy uint8

// The failure policies, in Koordinator's words.
const (
	Ignore FailurePolicy = iota // the plugin is skipped and the call goes on
	Fail                        // the call is refused, so that kubelet tries again
)

// String returns the policy as an operator writes it.
func (p FailurePolicy) String() string {
	if p == Fail {
		return "Fail"
	}
	return "Ignore"
}

// Features are what plugins can use of a node that nodes may lack, by the version of its
// cgroups: 1, 2, or 0 for a node without cgroup files.
func Features(cgroupVersion int) []abi.Feature {
	all := []abi.Feature{abi.FeatureUpdate, abi.FeatureKV}
	if cgroupVersion > 0 {
		all = append(all, abi.FeatureCgroupFiles)
	}
	if cgroupVersion == 2 {
		all = append(all, abi.FeatureCgroupV2)
	}
	return all
}
