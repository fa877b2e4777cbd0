// Package manifests builds the manifests of deploy/kustomize, as kustomize build does.
package manifests

import (
	"fmt"
	"path/filepath"
	"runtime"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// Dir is deploy/kustomize of this checkout, as its tests were built.
func Dir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "../../../../deploy/kustomize")
}

// Build returns the objects of a directory with a kustomization, in the order in which they are
// to be made.
func Build(dir string) (objects []*unstructured.Unstructured, err error) {
	all, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", dir, err)
	}
	for _, r := range all.Resources() {
		object := new(unstructured.Unstructured)
		text, err := r.MarshalJSON()
		if err == nil {
			err = object.UnmarshalJSON(text)
		}
		if err != nil {
			return nil, fmt.Errorf("building %s: %s: %w", dir, r.CurId(), err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}
