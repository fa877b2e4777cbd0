package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/daemon"
	pb "github.com/wasmproxy/wasmproxy/runtime/remote/runtimehook"
	"github.com/wasmproxy/wasmproxy/testdata/hookserver"
)

// password is a secret that would do as a metric's name, too.
const password = "hunter2_hunter2"

// createSecret creates a container with the password in its environment.
func (n *node) createSecret(pod string) error {
	_, err := n.kubelet.CreateContainer(n.t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: pod, SandboxConfig: podNamed("web"),
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "app"}, Image: &runtimeapi.ImageSpec{Image: "web:1"},
			Envs: []*runtimeapi.KeyValue{{Key: "FILLER", Value: []byte(strings.Repeat("filler ", 130))}, {Key: "PASSWORD", Value: []byte(password)}},
		},
	})
	return err
}

// discreet fails the test if the password, or the half of it, is in the log or in a status.
func (n *node) discreet(errs ...error) {
	n.t.Helper()
	for _, secret := range []string{password, password[:len(password)/2]} {
		for line := range strings.Lines(n.log.String()) {
			if strings.Contains(line, secret) {
				n.t.Errorf("the log has %.300q", line)
			}
		}
		if err := errors.Join(errs...); err != nil && strings.Contains(err.Error(), secret) {
			n.t.Errorf("kubelet gets %v", err)
		}
	}
}

// A plugin that may read the environment says a value of it in every way that there is,
// and so often that its breaker opens; nothing of that gets out, and what it wanted happens.
func TestSecretsOfAGuest(t *testing.T) {
	const all = `"grant": ["env", "state.kv"]`
	for _, test := range []struct {
		config, policy, more string
		code                 codes.Code
		says                 string // in the log; with a code in kubelet's status too
	}{
		{"", "Fail", "", codes.OK, `msg="plugin changed field"`},
		{"f", "Fail", "", codes.Unavailable, "failed: (hidden)"},
		{"f", "Ignore", "", codes.OK, "failed: (hidden)"},
		{"r", "Fail", "", codes.FailedPrecondition, "rejected: (hidden)"},
		{"a", "Fail", "", codes.Unavailable, "aborted: (hidden) (it printed: (hidden))"},
		{"a", "Ignore", "", codes.OK, "aborted: (hidden) (it printed: (hidden))"},
		{"t", "Fail", "", codes.Unavailable, "trapped: unreachable in $19 (it printed: (hidden))"},
		{"", "Ignore", `, "dry-run": true`, codes.OK, `msg="plugin would change field"`},
		{"r", "Fail", `, "dry-run": true`, codes.OK, `msg="plugin would refuse the call"`},
		{"f", "Ignore", `, "dry-run": true`, codes.OK, "failed: (hidden)"},
	} {
		t.Run(fmt.Sprintf("%s %s%s", test.config, test.policy, test.more), func(t *testing.T) {
			n := serving(t, map[string]string{
				"10-teller.json": fmt.Sprintf(`{%s, "runtime-hooks": ["PreCreateContainer"], "failure-policy": %q, "config": %q %s}`, all, test.policy, test.config, test.more),
				"10-teller.wasm": "teller",
			})
			n.await("plugins active", "10-teller")
			pod, err := n.runPod(t.Context(), "web")
			n.must(err)
			for range 6 {
				err = n.createSecret(pod)
				if status.Code(err) != test.code || test.code != codes.OK && !strings.Contains(err.Error(), test.says) {
					t.Errorf("kubelet gets %v, want code %v", err, test.code)
				}
				n.discreet(err)
			}
			n.end()
			n.discreet()
			journal := n.log.String()
			for _, says := range []string{`msg="plugin log" plugin=10-teller hook=PreCreateContainer namespace=test pod=web pod_id=`, ` container=app text=(hidden)`, `told_total{by=\"(hidden)\"}`} {
				if !strings.Contains(journal, says) {
					t.Errorf("the log lacks %s", says)
				}
			}
			if test.code == codes.OK && !strings.Contains(journal, test.says) {
				t.Errorf("the log lacks %s", test.says)
			}
			if failing := test.config == "f" || test.config == "a"; failing && !strings.Contains(journal, "circuit breaker opened") {
				t.Error("its breaker did not open")
			}
		})
	}
}

// What a plugin has set reaches the runtime as it is.
func TestSecretsAreHiddenFromTheLogOnly(t *testing.T) {
	n := serving(t, map[string]string{"10-teller.json": `{"grant": ["env"], "runtime-hooks": ["PreCreateContainer"]}`, "10-teller.wasm": "teller"})
	n.await("plugins active", "10-teller")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	n.must(n.createSecret(pod))
	n.end()
	n.discreet()
	for _, c := range n.runtime.RuntimeService.Containers {
		if got := c.Annotations["example.com/password"]; got != password {
			t.Errorf("the annotation is %q", got)
		}
	}
}

// At its ticks a plugin says what it read of a container that it looked up.
func TestSecretsOfATick(t *testing.T) {
	n := serving(t, nil)
	n.put("20-quota.wasm", "quota") // so that the store follows
	n.await("plugins active", "20-quota")
	pod, err := n.runPod(t.Context(), "web")
	n.must(err)
	n.must(n.createSecret(pod))
	n.put("10-teller.json", `{"grant": ["env"], "runtime-hooks": ["Tick"], "config": "f"}`)
	n.put("10-teller.wasm", "teller")
	n.await("plugin log", "hook=Tick", "text=(hidden)")
	n.await("plugin failed and was ignored", "hook=Tick", "failed: (hidden)")
	n.end()
	n.discreet()
}

// A plugin with cri.raw and credentials says the whole request of a pull.
func TestSecretsOfAPull(t *testing.T) {
	for _, grant := range []string{`["cri.raw", "credentials"]`, `["cri.raw"]`} {
		n := serving(t, map[string]string{
			"10-teller.json": `{"grant": ` + grant + `, "runtime-hooks": ["PrePullImage"], "failure-policy": "Fail", "config": "r"}`, "10-teller.wasm": "teller",
		})
		n.await("plugins active", "10-teller")
		conn, err := grpc.NewClient("unix://"+n.config.Listen, grpc.WithTransportCredentials(insecure.NewCredentials()))
		n.must(err)
		defer conn.Close()
		_, err = runtimeapi.NewImageServiceClient(conn).PullImage(t.Context(), &runtimeapi.PullImageRequest{
			Image: &runtimeapi.ImageSpec{Image: "registry.example.com/web:1"},
			Auth:  &runtimeapi.AuthConfig{Username: "puller", Password: password, Auth: "cHVsbGVyOmh1bnRlcjJfaHVudGVyMg==", ServerAddress: "registry.example.com"},
		})
		if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "registry.example.com/web:1") {
			t.Errorf("kubelet gets %v", err)
		}
		if strings.Contains(err.Error(), "puller") || strings.Contains(err.Error(), "cHVsbGVy") {
			t.Errorf("kubelet gets credentials: %v", err)
		}
		n.discreet(err)
	}
}

// complaining fails with the request in its words, as servers do that print what they could not use.
type complaining struct{}

func (complaining) PreCreateContainerHook(_ context.Context, r *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	return nil, status.Errorf(codes.InvalidArgument, "the password is %s, in %v", r.GetContainerEnvs()["PASSWORD"], r)
}

// rambling is complaining whose words are cut in the middle of the password, after 1 KiB.
type rambling struct{}

func (rambling) PreCreateContainerHook(_ context.Context, r *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	return nil, status.Error(codes.Internal, strings.Repeat("x", 1<<10-len(password)/2-1)+r.GetContainerEnvs()["PASSWORD"])
}

// copying answers with the password in an annotation, and in a name that is none.
type copying struct {
	key string
}

func (c copying) PreCreateContainerHook(_ context.Context, r *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	return &pb.ContainerResourceHookResponse{ContainerAnnotations: map[string]string{c.key + r.GetContainerEnvs()["PASSWORD"]: r.GetContainerEnvs()["PASSWORD"]}}, nil
}

// replacing is copying that gives the variable another value with the same answer.
type replacing struct{}

func (replacing) PreCreateContainerHook(_ context.Context, r *pb.ContainerResourceHookRequest) (*pb.ContainerResourceHookResponse, error) {
	envs := map[string]string{"FILLER": r.GetContainerEnvs()["FILLER"], "PASSWORD": "another-value"}
	return &pb.ContainerResourceHookResponse{ContainerEnvs: envs, ContainerAnnotations: map[string]string{"example.com/old": "it was " + r.GetContainerEnvs()["PASSWORD"]}}, nil
}

// A hook server is sent every environment. Its errors and what it sets are told without.
func TestSecretsOfAHookServer(t *testing.T) {
	for _, test := range []struct {
		server any
		policy string
		code   codes.Code
		says   string
	}{
		{complaining{}, "Fail", codes.Unavailable, "InvalidArgument: the password is (hidden), in pod_meta:"},
		{complaining{}, "Ignore", codes.OK, "InvalidArgument: the password is (hidden), in pod_meta:"},
		{rambling{}, "Fail", codes.Unavailable, "xxx(hidden)"},
		{copying{key: "example.com/"}, "Fail", codes.OK, "example.com/(hidden)"},
		{replacing{}, "Fail", codes.OK, "it was (hidden)"},
		{copying{key: "io.kubernetes."}, "Fail", codes.Unavailable, "io.kubernetes.(hidden)"},
	} {
		t.Run(fmt.Sprintf("%T %s %v", test.server, test.policy, test.code), func(t *testing.T) {
			n := newNode(t)
			l, err := net.Listen("unix", filepath.Join(n.dir, "hook.sock"))
			n.must(err)
			g := grpc.NewServer()
			hookserver.Register(g, test.server)
			go g.Serve(l)
			t.Cleanup(g.Stop)
			n.register("koordlet.json", `{"remote-endpoint": "`+n.dir+`/hook.sock", "failure-policy": "`+test.policy+`", "runtime-hooks": ["PreCreateContainer"]}`)
			n.start(daemon.Run)
			n.await("plugins active", "plugins=[koordlet]")
			pod, err := n.runPod(t.Context(), "web")
			n.must(err)
			for range 6 {
				err = n.createSecret(pod)
				n.discreet(err)
				if status.Code(err) != test.code || err != nil && !strings.Contains(err.Error(), test.says) {
					t.Errorf("kubelet gets %v", err)
				}
			}
			n.end()
			n.discreet()
			if err == nil && !strings.Contains(n.log.String(), test.says) {
				t.Errorf("the log lacks %s:\n%s", test.says, n.log)
			}
		})
	}
}
