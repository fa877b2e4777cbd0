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

// Getters are those that are generated, of a Pod, a Container, the Node or Resources: maps, sets and what
// may be absent read in ways of their own, and so does the pod that a container is in.
func (t tables) Getters(object string) (all []getter, err error) {
	of := map[string]struct {
		first  string // of the constants
		object abi.Object
		base   abi.Field // that is added to the constants
	}{
		"Pod":       {"PodID", abi.Pod, 0},
		"Container": {"ContainerID", abi.Container, 0},
		"Node":      {"NodeCgroupVersion", abi.Node, 0},
		"Resources": {"CPUPeriod", abi.Container, abi.Resources},
	}[object]
	block, err := t.Block(of.first)
	for _, n := range block {
		info, _ := abi.FieldOf(of.object, of.base+abi.Field(n.Value.(int64)))
		kind := info.Type == abi.Int64 || info.Type == abi.String || info.Type == abi.List
		if !kind || info.Format == abi.ID || n.Name == "ContainerPodID" {
			continue
		}
		name := strings.Replace(strings.TrimPrefix(n.Name, object), "setCpus", "setCPUs", 1)
		all = append(all, getter{info, n.Name, name, n.Comment, strings.HasPrefix(n.Comment, "whether ")})
	}
	return all, err
}

// Argument is what a setter calls its argument.
func (g getter) Argument() string {
	return map[abi.Format]string{
		abi.Period: "us", abi.Quota: "us", abi.Shares: "shares", abi.MemoryBytes: "bytes", abi.Score: "score", abi.CPUList: "list",
	}[g.Format]
}
