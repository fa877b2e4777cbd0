package intercept_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/intercept"
	"github.com/wasmproxy/wasmproxy/runtime/observe/slogsink"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

var (
	seesEnv         = abi.CapabilitySetOf(abi.Env)
	seesCredentials = abi.CapabilitySetOf(abi.Credentials)
)

// TestSecretsOfMessages has every request that holds secrets.
func TestSecretsOfMessages(t *testing.T) {
	create := secretCreate()
	create.Config.Envs = append(create.Config.Envs, &runtimeapi.KeyValue{Key: "POD_NAME", Value: []byte("web-0")}, &runtimeapi.KeyValue{Key: "TIER", Value: []byte("gold")},
		&runtimeapi.KeyValue{Key: "NODE", Value: []byte("node-7")}, &runtimeapi.KeyValue{Key: "HOSTNAME", Value: []byte("node-7")})
	create.Config.Labels = map[string]string{"io.kubernetes.pod.name": "web-0", "example.com/tier": "gold"}
	pull := &runtimeapi.PullImageRequest{Auth: &runtimeapi.AuthConfig{
		Username: "1", Password: "2", Auth: "dXNlcjpwYXNzOndvcmQ=", IdentityToken: "3", RegistryToken: "4", ServerAddress: "registry.example.com",
	}}
	for _, test := range []struct{ got, want []string }{
		{intercept.Secrets(create, seesEnv), []string{secret, "gold"}},
		{intercept.Secrets(create, seesCredentials), nil},
		{intercept.Secrets(&runtimeapi.RestorePodRequest{ContainerConfigs: []*runtimeapi.ContainerConfig{create.Config}}, seesEnv), []string{secret, "gold"}},
		{intercept.Secrets(pull, seesCredentials), []string{"1", "2", "dXNlcjpwYXNzOndvcmQ=", "3", "4", "user", "pass:word"}},
		{intercept.Secrets(pull, seesEnv), nil},
	} {
		if !slices.Equal(test.got, test.want) {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

// TestRequestsWithSecrets looks for requests that hold secrets and are not in TestSecretsOfMessages.
func TestRequestsWithSecrets(t *testing.T) {
	var holders []string
	for _, m := range cri.Methods {
		d := m.NewRequest().ProtoReflect().Descriptor()
		if holds(d, "", map[protoreflect.FullName]bool{}) {
			holders = append(holders, string(d.Name()))
		}
	}
	slices.Sort(holders)
	if want := []string{"CreateContainerRequest", "PullImageRequest", "RestorePodRequest"}; !slices.Equal(holders, want) {
		t.Errorf("%q hold secrets, want %q", holders, want)
	}
	auth := &runtimeapi.AuthConfig{}
	if n := auth.ProtoReflect().Descriptor().Fields().Len(); n != 6 {
		t.Errorf("credentials have %d fields, which are not all known", n)
	}
}

// holds reports whether a message has credentials in it, or an environment, which is to be a container's only.
func holds(d protoreflect.MessageDescriptor, in protoreflect.Name, seen map[protoreflect.FullName]bool) bool {
	switch {
	case d.Name() == "AuthConfig", d.Name() == "KeyValue" && in == "ContainerConfig":
		return true
	case d.Name() == "KeyValue":
		panic("an environment in " + in)
	case seen[d.FullName()]:
		return false
	}
	seen[d.FullName()] = true
	found := false
	for i := range d.Fields().Len() {
		if f := d.Fields().Get(i); f.Message() != nil {
			found = holds(f.Message(), d.Name(), seen) || found
		}
	}
	return found
}

// An event has the secrets of its own container, also when that is the store's, what an earlier plugin has
// set, and those of containers from when they are handed out.
func TestSecretsOfAnEvent(t *testing.T) {
	var first, second, third []string
	hear := func(_ context.Context, ev plugin.Event, _ *plugin.Adjustment) error {
		values, next := ev.Secrets(seesEnv, 0)
		first = slices.Compact(values)
		if _, err := neighbour(ev); err != nil {
			return err
		}
		second, next = ev.Secrets(seesEnv, next)
		third, _ = ev.Secrets(seesEnv, next)
		return nil
	}
	set := func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.SetEntry(abi.Container, abi.ContainerEnv, "NEW", "set")
	}
	old := []string{"1", "first", "\xff\xfe", "second"}
	n := newNode(t, nil)
	n.runPod()
	n = n.with(withStore(n), on(abi.PreCreateContainer, set), on(abi.PreCreateContainer, hear), on(abi.PreStartContainer, hear))
	_, err := n.call(t.Context(), "CreateContainer", secretCreate(), &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
	n.must(err)
	if !slices.Contains(first, secret) || !slices.Contains(first, "set") || !slices.Equal(second, old) || third != nil {
		t.Errorf("creating: at first %q, then %q, %q", first, second, third)
	}
	_, err = n.call(t.Context(), "StartContainer", &runtimeapi.StartContainerRequest{ContainerId: "c2"}, &runtimeapi.StartContainerResponse{})
	n.must(err)
	if !slices.Contains(first, secret) || !slices.Contains(first, "set") || !slices.Equal(second, old) || third != nil {
		t.Errorf("starting: at first %q, then %q, %q", first, second, third)
	}
}

// A value that a plugin takes out of the environment, or replaces, is a secret still: what the
// log tells of the plugin's changes comes after them.
func TestSecretThatAPluginRemovesIsHidden(t *testing.T) {
	removals := map[string]function{
		"deleted": func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.DeleteEntry(abi.Container, abi.ContainerEnv, "TOKEN")
		},
		"replaced": func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
			return adj.SetEntry(abi.Container, abi.ContainerEnv, "TOKEN", "another value")
		},
		"kept": func(context.Context, plugin.Event, *plugin.Adjustment) error { return nil },
	}
	for name, remove := range removals {
		t.Run(name, func(t *testing.T) {
			tells := func(ctx context.Context, ev plugin.Event, adj *plugin.Adjustment) error {
				old, _ := ev.Lookup(abi.Container, abi.ContainerEnv, "TOKEN")
				if err := remove(ctx, ev, adj); err != nil {
					return err
				}
				return adj.SetEntry(abi.Container, abi.ContainerAnnotations, "example.com/"+old, old)
			}
			var text bytes.Buffer
			log := slogsink.New(slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
			n := newNode(t, nil, func(o *intercept.Options) {
				o.Chain = plugin.NewChain(log, 0, on(abi.PreCreateContainer, tells))
			})
			_, err := n.call(t.Context(), "CreateContainer", secretCreate(), &runtimeapi.CreateContainerResponse{ContainerId: "c2"})
			n.must(err)
			if shown := text.String(); strings.Contains(shown, secret) || !strings.Contains(shown, `"field":"container.annotations[\"example.com/(hidden)\"]","value":"(hidden)"`) {
				t.Errorf("the log has %s", shown)
			}
		})
	}
}

// An annotation may hold a pod's whole manifest: the event of its removal hides what it held.
func TestPreviousAnnotationIsHidden(t *testing.T) {
	m := on(abi.PreRunPodSandbox, func(_ context.Context, _ plugin.Event, adj *plugin.Adjustment) error {
		return adj.DeleteEntry(abi.Pod, abi.PodAnnotations, "manifest")
	})
	m.DryRun = true
	n := newNode(t, []plugin.Member{m})
	config := &runtimeapi.PodSandboxConfig{Annotations: map[string]string{"manifest": secret}}
	_, err := n.call(t.Context(), "RunPodSandbox", &runtimeapi.RunPodSandboxRequest{Config: config}, &runtimeapi.RunPodSandboxResponse{PodSandboxId: "p"})
	n.must(err)
	const wanted = `"msg":"plugin would change field","plugin":"`
	const hidden = `"field":"pod.annotations[\"manifest\"]","previous":"(hidden)"`
	if log := n.log.String(); !strings.Contains(log, wanted) || !strings.Contains(log, hidden) {
		t.Errorf("the log is\n%s", log)
	}
}
