package intercept

import (
	"encoding/base64"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/dialect"
)

// Secrets implements plugin.Event: of the call's messages and the event's own container
// at first, then of each container that was handed out since.
func (e *event) Secrets(has abi.CapabilitySet, from int) (values []string, next int) {
	if e.host.ShowSecrets {
		return nil, 0
	}
	if from == 0 {
		from = 1
		if e.req != nil {
			values = Secrets(e.req, has)
		}
		r, creates := e.req.(*runtimeapi.CreateContainerRequest)
		if c := e.container; c != nil && !(creates && r.GetConfig() == c.Config) {
			values = append(values, Secrets(c.Config, has)...)
		}
	}
	for _, o := range e.handles.all[from-1:] {
		if o.Container != nil {
			values = append(values, Secrets(o.Container.Config, has)...)
		}
	}
	return values, 1 + len(e.handles.all)
}

// Secrets returns the values of environments anywhere in a message, if has has abi.Env, and
// registry credentials, if it has abi.Credentials. What kubelet names the pod
// or container by is no secret, although it may be in an environment. Nor is what runtimes add to one.
func Secrets(m proto.Message, has abi.CapabilitySet) (values []string) {
	switch r := m.(type) {
	case *runtimeapi.ContainerConfig:
		return environment(has, r)
	case *runtimeapi.AuthConfig:
		return credentials(has, r)
	}
	if !has.Has(abi.Env) && !has.Has(abi.Credentials) {
		return nil
	}
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() || f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				values = append(values, Secrets(v.List().Get(i).Message().Interface(), has)...)
			}
		default:
			values = append(values, Secrets(v.Message().Interface(), has)...)
		}
		return true
	})
	return values
}

func environment(has abi.CapabilitySet, c *runtimeapi.ContainerConfig) (values []string) {
	if !has.Has(abi.Env) {
		return nil
	}
	var names []string
	for key, name := range c.GetLabels() {
		if strings.HasPrefix(key, "io.kubernetes.") {
			names = append(names, name)
		}
	}
	added := dialect.Union(func(r dialect.Runtime) []string { return r.Env })
	for _, variable := range c.GetEnvs() {
		if slices.Contains(added, variable.GetKey()) {
			names = append(names, string(variable.GetValue()))
		}
	}
	for _, variable := range c.GetEnvs() {
		if v := string(variable.GetValue()); !slices.Contains(names, v) {
			values = append(values, v)
		}
	}
	return values
}

// credentials are those of a registry. Its address is not secret. Auth is the user and the
// password in base64, which is easily read.
func credentials(has abi.CapabilitySet, a *runtimeapi.AuthConfig) []string {
	if a == nil || !has.Has(abi.Credentials) {
		return nil
	}
	values := []string{a.GetUsername(), a.GetPassword(), a.GetAuth(), a.GetIdentityToken(), a.GetRegistryToken()}
	if plain, err := base64.StdEncoding.DecodeString(a.GetAuth()); err == nil {
		user, password, _ := strings.Cut(string(plain), ":")
		values = append(values, user, password)
	}
	return values
}
