package cri_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// Every hook's method is in the table, under a name and with types that CRI has.
func TestMethodsMatchHooksAndCRI(t *testing.T) {
	services := runtimeapi.File_staging_src_k8s_io_cri_api_pkg_apis_runtime_v1_api_proto.Services()
	hooked := abi.HookSet(0)
	for _, m := range cri.Methods {
		hooked |= m.Hooks()
		service, name, _ := strings.Cut(strings.TrimPrefix(m.Name, "/runtime.v1."), "/")
		desc := services.ByName(protoreflect.Name(service)).Methods().ByName(protoreflect.Name(name))
		if desc == nil {
			t.Fatalf("CRI has no method %s", m.Name)
		}
		if got, want := m.NewRequest().ProtoReflect().Descriptor(), desc.Input(); got != want {
			t.Errorf("%s takes %s, the table says %s", m.Name, want.FullName(), got.FullName())
		}
		if got, want := m.NewResponse().ProtoReflect().Descriptor(), desc.Output(); got != want {
			t.Errorf("%s answers %s, the table says %s", m.Name, want.FullName(), got.FullName())
		}
	}
	for _, h := range abi.Hooks {
		if h.Phase != abi.Standalone && !hooked.Has(h.Hook) {
			t.Errorf("no method of the table has hook %s", h.Name)
		}
	}
}
