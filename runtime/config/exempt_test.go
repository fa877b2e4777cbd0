package config_test

import (
	"os"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

// A list of texts is the same in every form, and an empty one is none.
func TestExemptNamespaces(t *testing.T) {
	for _, test := range []struct {
		name, file, variable string
		args                 []string
		want                 []string
	}{
		{"default", "", "", nil, []string{"kube-system", "wasmproxy"}},
		{"list in the file", "exempt-namespaces: [cni, kube-system]\n", "", nil, []string{"cni", "kube-system"}},
		{"text in the file", "exempt-namespaces: cni,kube-system\n", "", nil, []string{"cni", "kube-system"}},
		{"variable", "exempt-namespaces: [cni]\n", "storage, cni", nil, []string{"storage", "cni"}},
		{"flag", "exempt-namespaces: [cni]\n", "storage", []string{"--exempt-namespaces=edge"}, []string{"edge"}},
		{"empty list", "exempt-namespaces: []\n", "", nil, nil},
		{"empty text", "exempt-namespaces: \"\"\n", "", nil, nil},
		{"empty flag", "exempt-namespaces: [cni]\n", "", []string{"--exempt-namespaces="}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.variable != "" {
				t.Setenv("WASMPROXY_EXEMPT_NAMESPACES", test.variable)
			}
			c, err := load(t, test.file, test.args...)
			if err != nil || !slices.Equal(c.Exempt, test.want) {
				t.Errorf("got %q, %v, want %q", c.Exempt, err, test.want)
			}
		})
	}
}

// The namespace of the manifests' pods is exempt by default: they bring the plugins.
func TestManifestsNamespaceIsExempt(t *testing.T) {
	text, err := os.ReadFile("../../deploy/kustomize/plugins/kustomization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var of struct{ Namespace string }
	if err := yaml.Unmarshal(text, &of); err != nil {
		t.Fatal(err)
	}
	c, err := load(t, "")
	if err != nil || !slices.Contains(c.Exempt, of.Namespace) {
		t.Errorf("by default %q are exempt, %v; the manifests' pods are in %q", c.Exempt, err, of.Namespace)
	}
}
