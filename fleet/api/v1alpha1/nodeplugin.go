package v1alpha1

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// NodePlugin is a plugin that nodes are to have. Its name is the plugin's id on nodes.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=npl,categories=wasmproxy
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[0-9]{2}-[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && self.metadata.name.size() <= 52",message="metadata.name is the plugin's id on nodes: two digits, a hyphen and a name, such as 50-qos, of at most 52 characters"
// +kubebuilder:printcolumn:name="Stable",type=string,JSONPath=`.status.stable.revision`
// +kubebuilder:printcolumn:name="Update",type=string,JSONPath=`.status.update.revision`
// +kubebuilder:printcolumn:name="Step",type=string,JSONPath=`.status.update.step`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes.selected`
// +kubebuilder:printcolumn:name="Updated",type=integer,JSONPath=`.status.nodes.updated`
// +kubebuilder:printcolumn:name="Failing",type=integer,JSONPath=`.status.nodes.failing`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodePlugin struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodePluginSpec   `json:"spec"`
	Status NodePluginStatus `json:"status,omitempty"`
}

// NodePluginList is a list of them.
//
// +kubebuilder:object:root=true
type NodePluginList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodePlugin `json:"items"`
}

// NodePluginSpec is what a user wants.
type NodePluginSpec struct {
	RevisionSpec `json:",inline"`

	// disabled switches the plugin off at once, on all nodes, without steps.
	// +optional
	Disabled bool `json:"disabled,omitempty"`

	// +optional
	// +kubebuilder:default={}
	Rollout Rollout `json:"rollout,omitempty"`
}

// RevisionSpec is what a revision consists of: all of spec but disabled and rollout.
type RevisionSpec struct {
	// artifact is the OCI artifact with the plugin's module, by digest.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9.:-]+(/[a-z0-9._-]+)+(:[A-Za-z0-9._-]+)?@sha256:[a-f0-9]{64}$')",message="must name a digest: registry/repository@sha256:..."
	Artifact string `json:"artifact"`

	// nodeSelector says which nodes get the plugin. The default is all nodes that have an agent.
	// +optional
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`

	// +optional
	Settings *Settings `json:"settings,omitempty"`
}

// Settings are the keys of the plugin's JSON file. Its wasm-module, sha256 and enabled are set by the agent.
type Settings struct {
	// failure-policy says what becomes of a call in which the plugin fails.
	// +optional
	// +kubebuilder:validation:Enum=Ignore;Fail
	FailurePolicy string `json:"failure-policy,omitempty"`

	// dry-run has changes logged and not applied.
	// +optional
	DryRun bool `json:"dry-run,omitempty"`

	// timeout is the time of one hook, such as 500ms.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m))+$`
	Timeout string `json:"timeout,omitempty"`

	// tick-timeout is the time of one Tick.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m))+$`
	TickTimeout string `json:"tick-timeout,omitempty"`

	// tick-period is the time from one Tick to the next.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`
	TickPeriod string `json:"tick-period,omitempty"`

	// order sorts the plugin in the place of its id.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Order string `json:"order,omitempty"`

	// +optional
	// +kubebuilder:validation:Enum=none;instance
	State string `json:"state,omitempty"`

	// +optional
	// +kubebuilder:validation:Enum=auto;interpreter
	Engine string `json:"engine,omitempty"`

	// runtime-hooks are the hooks that the plugin keeps of its own.
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=set
	RuntimeHooks []string `json:"runtime-hooks,omitempty"`

	// grant are capabilities beyond the default ones, each a name, or an object with what it is bound to. Nodes check them when they
	// try the plugin.
	// +optional
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	Grant []Grant `json:"grant,omitempty"`

	// +optional
	Match *Match `json:"match,omitempty"`

	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// config is any JSON, which the plugin reads as its configuration.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Config json.RawMessage `json:"config,omitempty"`
}

// Grant is a capability: its name, or an object such as {"mounts": ["/opt/tools"]}.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:Format=""
// +kubebuilder:validation:XPreserveUnknownFields
type Grant struct {
	json.RawMessage `json:"-"`
}

// Match says for which pods and containers the plugin is called. Every key that is given must match.
type Match struct {
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=6
	// +kubebuilder:validation:items:Enum=Guaranteed;Burstable;BestEffort;!Guaranteed;!Burstable;!BestEffort
	// +listType=atomic
	QOS []string `json:"qos,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	RuntimeHandlers []string `json:"runtime-handlers,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	Containers []string `json:"containers,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Limits are those of one hook.
type Limits struct {
	// +optional
	// +kubebuilder:validation:Minimum=1
	Fuel int64 `json:"fuel,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	HostCalls int64 `json:"host-calls,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	TickHostCalls int64 `json:"tick-host-calls,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	TickFuel int64 `json:"tick-fuel,omitempty"`
	// memory is that of one instance, such as 64Mi.
	// +optional
	// +kubebuilder:validation:Pattern=`^[0-9]+(Ki|Mi|Gi)?$`
	// +kubebuilder:validation:MaxLength=16
	Memory string `json:"memory,omitempty"`
}

// Rollout says how nodes get a new revision. It is not part of the revision.
type Rollout struct {
	// mode says what nodes do with a new revision. Apply makes it theirs. Shadow calls it beside the stable one and applies nothing of
	// what it wants, on all nodes in the end, until mode or the revision changes.
	// +optional
	// +kubebuilder:default=Apply
	// +kubebuilder:validation:Enum=Apply;Shadow
	Mode string `json:"mode,omitempty"`

	// canary selects the nodes that get a revision first, at most 100 of them. The default is one node that the controller picks.
	// +optional
	Canary *metav1.LabelSelector `json:"canary,omitempty"`

	// steps are percents of the nodes, which rise and end in 100.
	// +optional
	// +kubebuilder:default={1,10,50,100}
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=100
	// +kubebuilder:validation:XValidation:rule="self.isSorted() && self[self.size() - 1] == 100",message="percents must rise, and the last one must be 100"
	// +listType=atomic
	Steps []int32 `json:"steps,omitempty"`

	// bakeSeconds is how long each step lasts at least, and how long a node may go back to the version before by itself. A change of it
	// holds at once, from when the step, and the node's probation, began.
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	BakeSeconds int32 `json:"bakeSeconds,omitempty"`

	// maxFailing is how many of the nodes whose turn it is may fail or be silent: a number, or a percent, rounded down.
	// +optional
	// +kubebuilder:default="2%"
	// +kubebuilder:validation:XValidation:rule="type(self) == string ? self.matches('^([1-9]?[0-9]|100)%$') : self >= 0",message="must be a number of nodes, or a percent such as 2%"
	MaxFailing intstr.IntOrString `json:"maxFailing,omitempty"`

	// maxRefused is how many percent of its calls a revision may refuse on a node in its probation. Without it refusals are not judged.
	// +optional
	// +kubebuilder:validation:Pattern=`^([1-9]?[0-9]|100)%$`
	MaxRefused string `json:"maxRefused,omitempty"`

	// onFailure says what happens if more nodes fail: RollBack takes the revision back on all nodes, Halt leaves each node as it is.
	// +optional
	// +kubebuilder:default=RollBack
	// +kubebuilder:validation:Enum=RollBack;Halt
	OnFailure string `json:"onFailure,omitempty"`

	// paused keeps the rollout at its step.
	// +optional
	Paused bool `json:"paused,omitempty"`
}

// What Rollout.Mode may be.
const (
	Apply  = "Apply"
	Shadow = "Shadow"
)

// What Rollout.OnFailure may be.
const (
	RollBack = "RollBack"
	Halt     = "Halt"
)

// NoRevision is a revision that has no plugin: nodes that are to have it remove the plugin that the fleet has brought.
const NoRevision = "none"

// NodePluginStatus is the controller's. With spec.disabled, it is all that agents read. An agent that finds neither stable nor
// update changes nothing.
type NodePluginStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// stable is what nodes have that the update has not reached.
	// +optional
	Stable *Stable `json:"stable,omitempty"`

	// update is on its way to the nodes.
	// +optional
	Update *Update `json:"update,omitempty"`

	// rolledBack is the revision that was taken back last. It is not tried again until spec has another one.
	// +optional
	RolledBack string `json:"rolledBack,omitempty"`

	// +optional
	Nodes Nodes `json:"nodes,omitempty"`

	// examples are nodes that fail or are silent, at most 10.
	// +optional
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	Examples []Example `json:"examples,omitempty"`

	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Stable is a revision that nodes have proved.
type Stable struct {
	// +kubebuilder:validation:MaxLength=80
	Revision string `json:"revision"`
}

// Update is a revision that nodes get in steps.
type Update struct {
	// +kubebuilder:validation:MaxLength=80
	Revision string `json:"revision"`

	// mode is that of the rollout: Apply, or Shadow.
	// +optional
	Mode string `json:"mode,omitempty"`

	// step says for people where the rollout is, such as Fetch, Canary or 10%.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Step string `json:"step,omitempty"`

	// stepIndex counts steps: 0 fetches, 1 is that of canaries, and the others are those of spec.rollout.steps.
	StepIndex int32 `json:"stepIndex"`

	// stepSince is when the step began.
	StepSince metav1.Time `json:"stepSince"`

	// canaries are nodes that have the update in each step but the first.
	// +optional
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	Canaries []string `json:"canaries,omitempty"`

	// threshold is above the ranks of the nodes that are to have the update, from 0 to 4294967296.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967296
	Threshold int64 `json:"threshold"`

	// +optional
	BakeSeconds int32 `json:"bakeSeconds,omitempty"`

	// +optional
	MaxRefused string `json:"maxRefused,omitempty"`

	// halted says why the rollout does not go on by itself.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Halted string `json:"halted,omitempty"`
}

// Nodes are numbers of nodes.
type Nodes struct {
	Selected int32 `json:"selected"`
	Fetched  int32 `json:"fetched"` // have the update on disk, checked
	Updated  int32 `json:"updated"` // have the newest revision in their plugin directory
	Healthy  int32 `json:"healthy"` // of these, those that have ended its probation
	Failing  int32 `json:"failing"`
	Silent   int32 `json:"silent"` // were to switch, and have said nothing
	Apart    int32 `json:"apart"`  // have a file that was edited or made by hand
	Away     int32 `json:"away"`   // are not ready, or bypass plugins
}

// Example is a node that fails or is silent.
type Example struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// Types of conditions, as kstatus reads them.
const (
	Ready       = "Ready"       // all nodes are to have what spec says, and there is no update
	Reconciling = "Reconciling" // an update is on its way; not there otherwise
	Stalled     = "Stalled"     // nothing happens until spec changes; not there otherwise
)
