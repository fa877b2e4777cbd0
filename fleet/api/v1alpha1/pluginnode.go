package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PluginNode is what a node's agent says of its plugins. Its name is the node's, which owns it. It has no status subresource,
// so that a report is one write.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,categories=wasmproxy
// +kubebuilder:printcolumn:name="Proxy",type=string,JSONPath=`.proxyVersion`
// +kubebuilder:printcolumn:name="Bypassed",type=boolean,JSONPath=`.bypassed`
// +kubebuilder:printcolumn:name="Trust",type=string,JSONPath=`.trust`
// +kubebuilder:printcolumn:name="Failing",type=string,JSONPath=`.plugins[?(@.phase=="Failing")].name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PluginNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// proxyVersion is what the proxy has said last; empty if it has not answered yet.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ProxyVersion string `json:"proxyVersion,omitempty"`

	// bypassed says that the node has taken all plugins out of the way.
	// +optional
	Bypassed bool `json:"bypassed,omitempty"`

	// trust says whether the node takes only plugins that are signed, as a file of the node asks.
	// +optional
	Trust Trust `json:"trust,omitempty"`

	// +optional
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	Plugins []PluginReport `json:"plugins,omitempty"`
}

// Trust is whether a node has a trust file.
//
// +kubebuilder:validation:Enum=enforced;none
type Trust string

// The values of Trust.
const (
	TrustEnforced Trust = "enforced"
	TrustNone     Trust = "none"
)

// PluginNodeList is a list of them.
//
// +kubebuilder:object:root=true
type PluginNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PluginNode `json:"items"`
}

// PluginReport is what a node says of one plugin.
type PluginReport struct {
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// revision is what the agent has put into the plugin directory; empty if that is not known, or nothing is there.
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Revision string `json:"revision,omitempty"`

	// +optional
	Phase Phase `json:"phase,omitempty"`

	// since is when revision or phase changed last.
	// +optional
	Since metav1.Time `json:"since,omitempty"`

	// message says in one line why the phase is what it is.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`

	// shadow is the update that is called beside revision, and of which nothing is applied.
	// +optional
	Shadow *ShadowReport `json:"shadow,omitempty"`

	// next is the update that the node has tried, and does not have in its plugin directory yet.
	// +optional
	Next *Next `json:"next,omitempty"`
}

// ShadowReport is what became of a shadow.
type ShadowReport struct {
	// +kubebuilder:validation:MaxLength=80
	Revision string `json:"revision"`

	// phase is Waiting, Healthy (it is loaded, and does not fail) or Failing.
	Phase Phase `json:"phase"`

	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`

	// differences is in how many calls the shadow has wanted something else, or would have refused. It is written again when there are
	// ten times as many, and with other news.
	// +optional
	Differences int64 `json:"differences,omitempty"`
}

// Phase is what is true of a plugin on a node.
//
// +kubebuilder:validation:Enum=Waiting;Probation;Healthy;Failing;Edited;Blocked;Disabled;Orphaned
type Phase string

// The phases of a plugin.
const (
	Waiting   Phase = "Waiting"   // the proxy has not loaded it yet
	Probation Phase = "Probation" // it is active, and the node may still go back
	Healthy   Phase = "Healthy"   // it is active
	Failing   Phase = "Failing"   // it does not load, or has failed its probation
	Edited    Phase = "Edited"    // its file was edited on the node, and stays
	Blocked   Phase = "Blocked"   // a file of this name was there, which no delivery of the fleet has brought
	Disabled  Phase = "Disabled"
	Orphaned  Phase = "Orphaned" // no NodePlugin names it
)

// Phases are all of them.
var Phases = []Phase{Waiting, Probation, Healthy, Failing, Edited, Blocked, Disabled, Orphaned}

// Next is how a node has tried an update.
type Next struct {
	// +kubebuilder:validation:MaxLength=80
	Revision string `json:"revision"`
	// state is Fetched if the update is on disk and the proxy would load it, Refused if the proxy would not, and Waiting
	// if it cannot be fetched now.
	// +kubebuilder:validation:Enum=Fetched;Refused;Waiting
	State NextState `json:"state"`
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// NextState is how far an update is on a node that does not have it yet.
type NextState string

// The states of an update before the node has it.
const (
	NextFetched NextState = "Fetched"
	NextRefused NextState = "Refused"
	NextWaiting NextState = "Waiting"
)
