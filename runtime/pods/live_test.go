package pods

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

var (
	record = flag.String("record", "", "with "+endpointVar+": write the calls of the scenario to this `file`")
	scrub  = flag.String("scrub", "", "with -record: `old>new,…`, replacements for what is the machine's own")
)

const endpointVar = "WASMPROXY_CONTAINERD"

// TestRestartLive plays the scenario on a real runtime: after each step, a store
// that starts afresh has to know what the one that saw every call knows.
func TestRestartLive(t *testing.T) {
	socket := os.Getenv(endpointVar)
	if socket == "" {
		t.Skipf("set %s to the absolute path of a containerd or CRI-O socket whose store has the image %s", endpointVar, testImage)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var tape recording
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"), grpc.WithUnaryInterceptor(tape.record))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client := runtimeapi.NewRuntimeServiceClient(conn)
	version, err := client.Version(ctx, &runtimeapi.VersionRequest{})
	if err != nil {
		t.Fatalf("is there a runtime at %s? %v", socket, err)
	}
	if pods, err := client.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{}); err != nil || len(pods.GetItems()) > 0 {
		t.Fatalf("the runtime has to be empty, and has %d pods (error: %v)", len(pods.GetItems()), err)
	}
	tape = recording{} // without the questions above
	check := newRestartCheck(version.GetRuntimeName())
	s := &scenario{
		cri:     client,
		crio:    version.GetRuntimeName() == "cri-o",
		observe: check.observe,
		restart: func(point string) {
			tape.mark(point)
			check.restart(ctx, t, point, client)
		},
	}
	s.play(ctx, t)
	if *record != "" {
		tape.write(t, filepath.Clean(*record), *scrub)
	}
}
