package sdk

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// forbidden packages make a TinyGo plugin large, or do not work in one.
var forbidden = []string{"reflect", "encoding/json", "fmt", "time", "sync"}

// The whole closure is listed, not only what abi and sdk import themselves, for
// each way in which a plugin is built.
func TestPluginsInheritNothingLarge(t *testing.T) {
	for _, target := range []struct {
		name string
		env  []string
		tags string
	}{
		{"Go, wasip1", []string{"GOOS=wasip1", "GOARCH=wasm"}, ""},
		{"TinyGo, wasip1", []string{"GOOS=wasip1", "GOARCH=wasm"}, "tinygo,tinygo.wasm"},
		{"TinyGo, wasm-unknown", []string{"GOOS=linux", "GOARCH=arm"}, "tinygo,tinygo.wasm,wasm_unknown"},
	} {
		t.Run(target.name, func(t *testing.T) {
			list := exec.Command("go", "list", "-deps", "-tags", target.tags, "../abi", ".", "./glob", "./image", "./json", "./quantity")
			list.Env = append(os.Environ(), target.env...)
			out, err := list.Output()
			if err != nil {
				t.Fatal(err)
			}
			deps := strings.Fields(string(out))
			if !slices.Contains(deps, "github.com/wasmproxy/wasmproxy/sdk") || len(deps) < 5 {
				t.Fatalf("this is no list of dependencies: %q", deps)
			}
			for _, dep := range deps {
				if slices.Contains(forbidden, dep) || strings.Contains(dep, ".") && !strings.HasPrefix(dep, "github.com/wasmproxy/wasmproxy/") {
					t.Errorf("depends on %s", dep)
				}
			}
		})
	}
}
