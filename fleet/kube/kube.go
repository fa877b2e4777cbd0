// Package kube reads and writes the few kinds of objects that the fleet needs. It has neither a typed clientset nor informers: an
// agent runs on each node, and they would make it several times as large. It decides nothing.
package kube

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/wasmproxy/wasmproxy/fleet/api/v1alpha1"
)

// Client reaches the API server. It is safe for concurrent use.
type Client struct {
	Fleet *rest.RESTClient // NodePlugin, PluginNode
	Core  *rest.RESTClient // Node
	Apps  *rest.RESTClient // ControllerRevision
}

// Config says where the API server is, and as whom to reach it: by a kubeconfig file, or if that is empty as the pod's service account.
func Config(kubeconfig string) (*rest.Config, error) {
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the API server: %w", err)
	}
	c.UserAgent = "wasmproxy-fleet"
	return c, nil
}

// New makes a client. It does not call the API server.
func New(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	v1alpha1.AddToScheme(scheme)
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Node{}, &corev1.NodeList{})
	scheme.AddKnownTypes(appsv1.SchemeGroupVersion, &appsv1.ControllerRevision{}, &appsv1.ControllerRevisionList{})
	for _, gv := range []schema.GroupVersion{corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion} {
		metav1.AddToGroupVersion(scheme, gv)
	}
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		return nil, err
	}
	codecs := serializer.NewCodecFactory(scheme)
	httpClient, err := rest.HTTPClientFor(config) // one connection for all kinds
	if err != nil {
		return nil, err
	}
	c := new(Client)
	for _, group := range []struct {
		into **rest.RESTClient
		gv   schema.GroupVersion
		path string
	}{
		{&c.Fleet, v1alpha1.GroupVersion, "/apis"},
		{&c.Core, corev1.SchemeGroupVersion, "/api"},
		{&c.Apps, appsv1.SchemeGroupVersion, "/apis"},
	} {
		of := rest.CopyConfig(config)
		of.GroupVersion, of.APIPath, of.NegotiatedSerializer = &group.gv, group.path, codecs.WithoutConversion()
		if *group.into, err = rest.RESTClientForConfigAndClient(of, httpClient); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// NodeMetadata reads the metadata of a node, and no more of it.
func (c *Client) NodeMetadata(ctx context.Context, name string) (*metav1.PartialObjectMetadata, error) {
	node := new(metav1.PartialObjectMetadata)
	err := c.Core.Get().Resource("nodes").Name(name).
		SetHeader("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").Do(ctx).Into(node)
	return node, err
}

// Revision reads a ControllerRevision.
func (c *Client) Revision(ctx context.Context, namespace, name string) (*appsv1.ControllerRevision, error) {
	r := new(appsv1.ControllerRevision)
	return r, c.Apps.Get().Namespace(namespace).Resource("controllerrevisions").Name(name).Do(ctx).Into(r)
}

// CreateRevision writes one that is not there yet.
func (c *Client) CreateRevision(ctx context.Context, r *appsv1.ControllerRevision) error {
	return c.Apps.Post().Namespace(r.Namespace).Resource("controllerrevisions").Body(r).Do(ctx).Error()
}

// PatchRevision changes one by a merge patch. Its data cannot be changed.
func (c *Client) PatchRevision(ctx context.Context, namespace, name string, patch []byte) error {
	return c.Apps.Patch(types.MergePatchType).Namespace(namespace).Resource("controllerrevisions").Name(name).Body(patch).Do(ctx).Error()
}

// DeleteRevision removes one.
func (c *Client) DeleteRevision(ctx context.Context, namespace, name string) error {
	return c.Apps.Delete().Namespace(namespace).Resource("controllerrevisions").Name(name).Do(ctx).Error()
}

// PluginNode reads what a node has reported.
func (c *Client) PluginNode(ctx context.Context, name string) (*v1alpha1.PluginNode, error) {
	n := new(v1alpha1.PluginNode)
	return n, c.Fleet.Get().Resource("pluginnodes").Name(name).Do(ctx).Into(n)
}

// SavePluginNode creates the object if it has no resource version, and else replaces it. It returns what the API server has made of it.
func (c *Client) SavePluginNode(ctx context.Context, n *v1alpha1.PluginNode) (*v1alpha1.PluginNode, error) {
	saved := new(v1alpha1.PluginNode)
	request := c.Fleet.Post().Resource("pluginnodes")
	if n.ResourceVersion != "" {
		request = c.Fleet.Put().Resource("pluginnodes").Name(n.Name)
	}
	return saved, request.Body(n).Do(ctx).Into(saved)
}

// SaveStatus replaces the status of a NodePlugin, if the object is as it was read.
func (c *Client) SaveStatus(ctx context.Context, p *v1alpha1.NodePlugin) error {
	return c.Fleet.Put().Resource("nodeplugins").Name(p.Name).SubResource("status").Body(p).Do(ctx).Error()
}

// PatchNodePlugin changes a NodePlugin by a merge patch.
func (c *Client) PatchNodePlugin(ctx context.Context, name string, patch []byte) error {
	return c.Fleet.Patch(types.MergePatchType).Resource("nodeplugins").Name(name).Body(patch).Do(ctx).Error()
}

// PatchNode changes a Node by a merge patch.
func (c *Client) PatchNode(ctx context.Context, name string, patch []byte) error {
	return c.Core.Patch(types.MergePatchType).Resource("nodes").Name(name).Body(patch).Do(ctx).Error()
}
