package main

import (
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// getter is the SDKs' getter of a field.
type getter struct {
	abi.FieldInfo
	Constant string // such as PodHostname
	Getter   string // in Go, such as Hostname
	Comment  string
	Truth    bool // a number that is 0 or 1
}

// Getters are those that are generated, of a Pod or a Container: maps, sets and what may be
// absent read in ways of their own, and so does the pod that a container is in.
func (t tables) Getters(object string) (all []getter, err error) {
	block, err := t.Block(object + "ID")
	number := abi.Pod
	if object == "Container" {
		number = abi.Container
	}
	for _, n := range block {
		info, _ := abi.FieldOf(number, abi.Field(n.Value.(int64)))
		kind := info.Type == abi.Int64 || info.Type == abi.String || info.Type == abi.List
		if !kind || info.Format == abi.ID || n.Name == "ContainerPodID" {
			continue
		}
		all = append(all, getter{info, n.Name, strings.TrimPrefix(n.Name, object), n.Comment, strings.HasPrefix(n.Comment, "whether ")})
	}
	return all, err
}
