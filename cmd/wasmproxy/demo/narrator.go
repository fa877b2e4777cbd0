package demo

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Colours of a terminal, SGR codes of ECMA-48.
const (
	bold   = "1"
	dim    = "2"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// narrator prints what happens, in colour if it prints to a terminal.
type narrator struct {
	w      io.Writer
	colour bool
}

func (n *narrator) paint(code, text string) string {
	if !n.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (n *narrator) title(text string) { fmt.Fprintf(n.w, "\n%s\n", n.paint(bold, text)) }

// line prints one line about who did what.
func (n *narrator) line(code, who, format string, args ...any) {
	fmt.Fprintf(n.w, "  %s %s\n", n.paint(code, fmt.Sprintf("%-8s", who)), fmt.Sprintf(format, args...))
}

// request prints the fields of a request, one per line. The pod's config, which
// comes again with each of its containers, was printed with the pod.
func (n *narrator) request(m proto.Message) {
	leaves := flatten(m)
	for _, path := range slices.Sorted(maps.Keys(leaves)) {
		if strings.HasPrefix(path, "sandbox_config.") {
			continue
		}
		fmt.Fprintf(n.w, "           %s\n", n.paint(dim, path+" = "+leaves[path]))
	}
}

// difference prints which fields of a request differ from what was asked.
func (n *narrator) difference(asked, received proto.Message) (differ bool) {
	was, is := flatten(asked), flatten(received)
	paths := maps.Clone(was)
	maps.Copy(paths, is)
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		switch {
		case was[path] == is[path]:
			continue
		case was[path] == "":
			n.line(green, "runtime", "got %s = %s", path, n.paint(bold, is[path]))
		default:
			n.line(green, "runtime", "got %s = %s, not %s", path, n.paint(bold, is[path]), was[path])
		}
		differ = true
	}
	if !differ {
		n.line(green, "runtime", "got the request as kubelet sent it")
	}
	return differ
}

// files prints which cgroup files changed.
func (n *narrator) files(before, after map[string]string) {
	for _, file := range slices.Sorted(maps.Keys(after)) {
		if was, known := before[file]; known && was != after[file] {
			n.line(cyan, "cgroup", "%s: %s → %s", file, was, n.paint(bold, after[file]))
		}
	}
}

// flatten returns the set fields of a message, at any depth, by their paths.
func flatten(m proto.Message) map[string]string {
	leaves := map[string]string{}
	if m != nil {
		flattenMessage(leaves, "", m.ProtoReflect())
	}
	return leaves
}

func flattenMessage(leaves map[string]string, prefix string, m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		path := prefix + string(f.Name())
		switch {
		case f.IsMap():
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				leaves[path+"["+k.String()+"]"] = v.String()
				return true
			})
		case f.IsList():
			leaves[path] = fmt.Sprintf("(%d)", v.List().Len())
		case f.Message() != nil:
			flattenMessage(leaves, path+".", v.Message())
		default:
			leaves[path] = v.String()
		}
		return true
	})
}

// snapshot reads every file of the cgroup tree.
func snapshot(root string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path) // path is beneath root
		files[name] = strings.TrimSpace(string(content))
		return nil
	})
	return files, err
}
