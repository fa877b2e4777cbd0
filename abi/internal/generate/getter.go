package main

import (
	"fmt"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// getter is the SDKs' getter of a field.
type getter struct {
	abi.FieldInfo
	constant string // such as PodHostname
	name     string // in Go, such as Hostname
	comment  string
	truth    bool // a number that is 0 or 1
}

// getters are those that are generated, of a pod or a container: maps, sets and what may be
// absent read in ways of their own, and so does the pod that a container is in.
func getters(c *constantSet, object abi.Object, first string) (all []getter) {
	for _, n := range c.block(first) {
		info, _ := abi.FieldOf(object, abi.Field(n.value))
		kind := info.Type == abi.Int64 || info.Type == abi.String || info.Type == abi.List
		if !kind || info.Format == abi.ID || n.name == "ContainerPodID" {
			continue
		}
		name := strings.TrimPrefix(strings.TrimPrefix(n.name, "Pod"), "Container")
		all = append(all, getter{info, n.name, name, n.comment, strings.HasPrefix(n.comment, "whether ")})
	}
	return all
}

// goGetters writes the getters of package sdk.
func goGetters(_ string, c *constantSet) (file, error) {
	var b strings.Builder
	b.WriteString("package sdk\n\nimport \"github.com/wasmproxy/wasmproxy/abi\"\n")
	write := func(receiver, object string, all []getter) {
		for _, g := range all {
			verb, result, read := "returns", "string", "readText"
			switch {
			case g.truth:
				verb, result, read = "tells", "bool", "readInt64"
			case g.Type == abi.Int64:
				result, read = "int64", "readInt64"
			case g.Type == abi.List:
				result, read = "[]string", "readList"
			}
			value := fmt.Sprintf("%s(%q, %s.object(), abi.%s)", read, g.name, receiver, g.constant)
			if g.truth {
				value += " != 0"
			}
			fmt.Fprintf(&b, "\n// %s %s %s.\nfunc (%s %s) %s() %s { return %s }\n", g.name, verb, g.comment, receiver, object, g.name, result, value)
		}
	}
	write("p", "Pod", getters(c, abi.Pod, "PodID"))
	write("c", "Container", getters(c, abi.Container, "ContainerID"))
	return goFile("sdk/getter.go", b.String())
}

// rustGetters writes those of the Rust SDK.
func rustGetters(_ string, c *constantSet) (file, error) {
	w := new(rustWriter)
	w.f("%suse crate::abi::field;\nuse crate::{Container, Pod, read};\n", generated)
	write := func(object string, all []getter) {
		w.f("\nimpl %s {\n", object)
		for i, g := range all {
			result, read, truth := "String", "text", ""
			switch {
			case g.truth:
				result, read, truth = "bool", "number", " == 1"
			case g.Type == abi.Int64:
				result, read = "i64", "number"
			case g.Type == abi.List:
				result, read = "Vec<String>", "texts"
			}
			if i > 0 {
				w.f("\n")
			}
			w.f("    /// %s.\n    pub fn %s(&self) -> %s {\n        read::%s(%q, self.0, field::%s)%s\n    }\n",
				strings.ToUpper(g.comment[:1])+g.comment[1:], g.Name, result, read, g.Name, shout(object+"."+g.Name), truth)
		}
		w.f("}\n")
	}
	write("Pod", getters(c, abi.Pod, "PodID"))
	write("Container", getters(c, abi.Container, "ContainerID"))
	return file{"sdk/rust/src/getter.rs", []byte(w.String())}, nil
}
