package node

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// CRI is a client of both services at one endpoint.
type CRI struct {
	cri.RuntimeServiceClient
	cri.ImageServiceClient
}

// DialCRI returns a client that is closed with the test. The connection is made when first used.
func DialCRI(t testing.TB, endpoint string) CRI {
	t.Helper()
	conn, err := grpc.NewClient(endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatalf("making a CRI client for %s: %v", endpoint, err)
	}
	t.Cleanup(func() { conn.Close() })
	return CRI{cri.NewRuntimeServiceClient(conn), cri.NewImageServiceClient(conn)}
}

// AwaitCRI waits until an endpoint answers, and its backend if it has one.
func AwaitCRI(t testing.TB, endpoint string) {
	t.Helper()
	awaitCRI(t, endpoint, func() error { return nil })
}

// awaitCRI is AwaitCRI for what was just started; it gives up when that is no longer alive.
func awaitCRI(t testing.TB, endpoint string, alive func() error) {
	t.Helper()
	client := DialCRI(t, endpoint)
	Eventually(t, startTimeout, endpoint+" answers", func() error {
		if err := alive(); err != nil {
			t.Fatal(err)
		}
		_, err := client.Version(t.Context(), &cri.VersionRequest{})
		return err
	})
}

// removePods stops and removes every pod sandbox.
func (c CRI) removePods(ctx context.Context) error {
	pods, err := c.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	var errs []error
	for _, pod := range pods.Items {
		errs = append(errs, c.removePod(ctx, pod.Id))
	}
	return errors.Join(errs...)
}

func (c CRI) removePod(ctx context.Context, id string) error {
	if _, err := c.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id}); err != nil {
		return err
	}
	_, err := c.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id})
	return err
}
