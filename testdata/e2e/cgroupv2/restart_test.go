package cgroupv2_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/testdata/e2e/internal/guest"
)

// drain is how long calls in flight have when the service is restarted: drain-timeout.
const drain = 3 * time.Second

// testRestart: systemctl restart fails no call that is shorter than the drain timeout.
func (l *limited) testRestart(t *testing.T) {
	pid := func() string { return l.Run(t, "systemctl show --property=MainPID --value wasmproxy") }
	for range 2 {
		before, end := pid(), l.load(t)
		l.Run(t, "systemctl restart wasmproxy")
		time.Sleep(time.Second)
		calls, failed := end()
		t.Logf("%d calls", calls)
		for _, f := range failed {
			if f.took < drain {
				t.Errorf("a call failed through a restart after %v: %v", f.took, f.err)
			}
		}
		if now := pid(); now == before {
			t.Errorf("process %s serves before and after the restart", now)
		}
		l.AwaitProxy(t)
	}
	if got := l.Run(t, "systemctl show --property=ActiveState --property=StatusText --value wasmproxy"); !strings.HasPrefix(got, "active\nServing calls. ") && !strings.HasSuffix(got, "\nactive") {
		t.Errorf("systemd's state of the service is %q", got)
	}
}

// failedCall is a call that has failed.
type failedCall struct {
	took time.Duration
	err  error
}

// load makes up to 200 calls a second, every tenth of which the proxy decodes, until it is told to end.
func (l *limited) load(t *testing.T) (end func() (calls int, failed []failedCall)) {
	client := l.CRI(t, guest.ProxySocket)
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	var calls int
	var failed []failedCall
	pace := time.NewTicker(5 * time.Millisecond)
	for worker := range 8 {
		all.Go(func() {
			for n := worker; ; n++ {
				select {
				case <-pace.C:
				case <-ctx.Done():
					return
				}
				start := time.Now()
				err := call(t.Context(), client, n)
				mu.Lock()
				calls++
				if err != nil {
					failed = append(failed, failedCall{time.Since(start), err})
				}
				mu.Unlock()
			}
		})
	}
	return func() (int, []failedCall) {
		stop()
		all.Wait()
		pace.Stop()
		return calls, failed
	}
}

// call makes a call that passes, or one that the proxy follows for its plugins and the runtime
// refuses, since there is no such container.
func call(ctx context.Context, client cri.RuntimeServiceClient, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if n%10 > 0 {
		_, err := client.Version(ctx, &cri.VersionRequest{})
		return err
	}
	_, err := client.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: "none"})
	if status.Code(err) != codes.NotFound {
		return fmt.Errorf("the start of a container that does not exist: %w", err)
	}
	return nil
}
