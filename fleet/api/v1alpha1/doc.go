// Package v1alpha1 has the objects of the fleet: a NodePlugin for each plugin, and a PluginNode for each node. Its CRDs and
// deep copies are generated. It has no client and decides nothing.
//
// +kubebuilder:object:generate=true
// +groupName=fleet.wasmproxy.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:generate go tool -modfile=../../tools/go.mod controller-gen object crd:crdVersions=v1 paths=. output:crd:dir=../../../deploy/kustomize/fleet/crds

// GroupVersion is that of all types of the package.
var GroupVersion = schema.GroupVersion{Group: "fleet.wasmproxy.io", Version: "v1alpha1"}

// AddToScheme makes the types known to a scheme.
func AddToScheme(s *runtime.Scheme) {
	s.AddKnownTypes(GroupVersion, &NodePlugin{}, &NodePluginList{}, &PluginNode{}, &PluginNodeList{})
	metav1.AddToGroupVersion(s, GroupVersion)
}
