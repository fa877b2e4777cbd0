package intercept

import (
	"encoding/base64"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Secrets implements plugin.Event: of the call's messages and the event's own container
// at first, then of each container that was handed out since.
func (e *event) Secrets(has abi.CapabilitySet, from int) (values []string, next int) {
	if e.shown {
		return nil, 0
	}
	if from == 0 {
		values, from = e.ownSecrets(has), 1
	}
	for _, o := range e.handles.all[from-1:] {
		if o.container != nil {
			values = append(values, Secrets(o.container.config, has)...)
		}
	}
	return values, 1 + len(e.handles.all)
}

func (e *event) ownSecrets(has abi.CapabilitySet) (values []string) {
	if e.about.req != nil {
		values = Secrets(e.about.req, has)
	}
	if e.container == nil {
		return values
	}
	if r, ok := e.about.req.(*runtimeapi.CreateContainerRequest); ok && r.GetConfig() == e.container.config {
		return values
	}
	return append(values, Secrets(e.container.config, has)...)
}

// Secrets returns the values of environments in a message, if has has abi.Env, and
// registry credentials, if it has abi.Credentials. What kubelet names the pod or container
// by is no secret, although it may be in an environment.
func Secrets(m proto.Message, has abi.CapabilitySet) []string {
	var values []string
	names := map[string]bool{}
	visit(m.ProtoReflect(), func(m proto.Message) {
		switch m := m.(type) {
		case *runtimeapi.KeyValue:
			if has.Has(abi.Env) {
				values = append(values, string(m.GetValue()))
			}
		case *runtimeapi.AuthConfig:
			if has.Has(abi.Credentials) {
				values = append(values, credentials(m)...)
			}
		case *runtimeapi.ContainerConfig:
			for key, value := range m.GetLabels() {
				names[value] = names[value] || strings.HasPrefix(key, "io.kubernetes.")
			}
		}
	})
	return slices.DeleteFunc(values, func(v string) bool { return names[v] })
}

// credentials are those of a registry, whose address is none. Auth is the user and the
// password in base64, which is easily read.
func credentials(a *runtimeapi.AuthConfig) []string {
	values := []string{a.GetUsername(), a.GetPassword(), a.GetAuth(), a.GetIdentityToken(), a.GetRegistryToken()}
	if plain, err := base64.StdEncoding.DecodeString(a.GetAuth()); err == nil {
		user, password, _ := strings.Cut(string(plain), ":")
		values = append(values, user, password)
	}
	return values
}

// visit calls f with m and all messages in it.
func visit(m protoreflect.Message, f func(proto.Message)) {
	f(m.Interface())
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap() || fd.Message() == nil:
		case fd.IsList():
			for i := range v.List().Len() {
				visit(v.List().Get(i).Message(), f)
			}
		default:
			visit(v.Message(), f)
		}
		return true
	})
}
