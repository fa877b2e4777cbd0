package pods

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// counted counts the questions of a kind, which take so long.
func counted(n *node, method string, took time.Duration) *atomic.Int64 {
	var count atomic.Int64
	n.asked = func(m, _ string) error {
		if m == method {
			count.Add(1)
			time.Sleep(took)
		}
		return nil
	}
	return &count
}

func TestReadContainerReadsItsPod(t *testing.T) {
	s, n := NewStore(), smallNode()
	n.addContainer("other", "p", nil)
	c, err := s.ReadContainer(t.Context(), n, "c")
	if err != nil || c.PodID != "p" || c.Config.GetMetadata().GetName() != "app" {
		t.Fatalf("got %v, %v", c, err)
	}
	if p, ok := s.Pod("p"); !ok || p.Config.GetLinux().GetCgroupParent() != podConfig().GetLinux().GetCgroupParent() {
		t.Errorf("its pod is %v, %v", p, ok)
	}
	size(t, s, 1, 1)
	asked := counted(n, "ContainerStatus", 0)
	if _, err := s.ReadContainer(t.Context(), n, "c"); err != nil || asked.Load() != 0 {
		t.Errorf("a known container was asked for %d times (%v)", asked.Load(), err)
	}
}

// TestReadContainerOfASilentRuntime: one whose verbose status tells nothing.
func TestReadContainerOfASilentRuntime(t *testing.T) {
	s, n := NewStore(), smallNode()
	n.pods["p"].Info, n.containers["c"].Info = nil, nil
	n.containers["c"].Status.Annotations = map[string]string{"a": "b"}
	c, err := s.ReadContainer(t.Context(), n, "c")
	if err != nil || c.PodID != "p" || c.Config.GetAnnotations()["a"] != "b" || c.Config.GetLinux().GetResources().GetCpuShares() != 204 ||
		c.Config.GetLinux().GetResources().GetOomScoreAdj() != 990 {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestReadErrors(t *testing.T) {
	for _, test := range []struct {
		name, id, want string
		code           codes.Code
		change         func(*node)
	}{
		{"no such container", "x", "reading container x from the backend: ", codes.NotFound, nil},
		{"no such pod", "c", "reading pod sandbox p from the backend: ", codes.NotFound, func(n *node) { n.remove("p") }},
		{"info that is not JSON", "c", "reading container c from the backend: the verbose info is not the JSON it should be: ", codes.Unknown,
			func(n *node) { n.containers["c"].Info["info"] = "{" }},
		{"info of another shape", "c", "reading container c from the backend: the verbose info is not the JSON it should be: ", codes.Unknown,
			func(n *node) { n.containers["c"].Info["info"] = `{"config":{"envs":"SECRET=1"}}` }},
		{"no id", "c", "reading container c from the backend: the status has no id", codes.Unknown,
			func(n *node) { n.containers["c"].Status = nil }},
		{"not listed", "c", "reading container c from the backend: the backend does not list it", codes.Unknown,
			func(n *node) {
				n.containers["c"].Info = nil
				n.asked = func(method, id string) error {
					if method == "ContainerStatus" {
						n.remove("c")
					}
					return nil
				}
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, n := NewStore(), smallNode()
			if test.change != nil {
				test.change(n)
			}
			_, err := s.ReadContainer(t.Context(), n, test.id)
			if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "SECRET") {
				t.Fatalf("got %v, want %s…", err, test.want)
			}
			if got := status.Code(err); got != test.code {
				t.Errorf("the code is %v, want %v", got, test.code)
			}
			if _, containers := s.Len(); containers != 0 {
				t.Errorf("%d containers are known", containers)
			}
		})
	}
}

func TestReadSurvivesAPanic(t *testing.T) {
	s, n := NewStore(), smallNode()
	n.asked = func(string, string) error { panic("rubbish") }
	if _, err := s.ReadPod(t.Context(), n, "p"); err == nil || !strings.Contains(err.Error(), "panic: rubbish") {
		t.Errorf("got %v", err)
	}
}

// TestReadsShareOneCall, and the caller that came first may leave.
func TestReadsShareOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := NewStore(), smallNode()
		asked := counted(n, "ContainerStatus", time.Second)
		first, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		results := make(chan error)
		read := func(ctx context.Context) {
			_, err := s.ReadContainer(ctx, n, "c")
			results <- err
		}
		go read(first)
		synctest.Wait()
		for range 9 {
			go read(t.Context())
		}
		start := time.Now()
		if err := <-results; !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Millisecond {
			t.Errorf("the first was told %v after %v", err, time.Since(start))
		}
		for range 9 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if asked.Load() != 1 {
			t.Errorf("the backend was asked %d times", asked.Load())
		}
	})
}

// TestReadEnds: a backend that never answers holds neither its callers nor, for
// ever, the call that they share.
func TestReadEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, n := NewStore(), smallNode()
		hung := hungBackend{n}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := s.ReadPod(ctx, hung, "p"); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		time.Sleep(readTimeout)
		synctest.Wait()
		empty(t, s)
		if _, err := s.ReadPod(t.Context(), n, "p"); err != nil {
			t.Error(err)
		}
	})
}

type hungBackend struct{ Backend }

func (hungBackend) PodSandboxStatus(ctx context.Context, _ *runtimeapi.PodSandboxStatusRequest, _ ...grpc.CallOption) (*runtimeapi.PodSandboxStatusResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestCallsDuringRead: as during a Sync, the calls win.
func TestCallsDuringRead(t *testing.T) {
	for _, test := range []struct {
		name   string
		call   func(*Store)
		shares int64 // of the answer
		held   int
	}{
		{"update", func(s *Store) { update(s, "c", &runtimeapi.LinuxContainerResources{CpuShares: 77}) }, 77, 1},
		{"of another", func(s *Store) { update(s, "d", &runtimeapi.LinuxContainerResources{CpuShares: 77}) }, 204, 1},
		{"remove", func(s *Store) { removeContainer(s, "c") }, 204, 0},
		{"clear", func(s *Store) { s.Clear() }, 204, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, n := NewStore(), smallNode()
			during(n, "ContainerStatus", "c", func() { test.call(s) })
			c, err := s.ReadContainer(t.Context(), n, "c")
			if err != nil || c.Config.GetLinux().GetResources().GetCpuShares() != test.shares {
				t.Errorf("got %v, %v", c, err)
			}
			if _, held := s.Len(); held != test.held {
				t.Errorf("%d containers are held, want %d", held, test.held)
			}
		})
	}
}

// TestPodRemovedDuringRead: its containers went with it, also the one that is
// being read.
func TestPodRemovedDuringRead(t *testing.T) {
	s, n := NewStore(), smallNode()
	during(n, "ContainerStatus", "c", func() {
		n.removePod("p")
		removePod(s, "p")
	})
	if c, err := s.ReadContainer(t.Context(), n, "c"); status.Code(err) != codes.NotFound {
		t.Errorf("got %v, %v", c, err)
	}
	empty(t, s)

	n = smallNode()
	during(n, "PodSandboxStatus", "p", func() {
		n.removePod("p")
		removePod(s, "p")
	})
	if _, err := s.ReadContainer(t.Context(), n, "c"); err != nil {
		t.Error(err) // it was there when it was asked for
	}
	empty(t, s)
}

// What is known by a list alone is asked for at each read until the backend describes it. If that
// fails, what the list told is the answer.
func TestReadOfWhatIsKnownByAList(t *testing.T) {
	s, n := NewStore(), smallNode()
	broken := map[string]bool{"p": true, "c": true}
	n.asked = func(method, id string) error {
		if strings.HasSuffix(method, "Status") && broken[id] {
			return status.Error(codes.Unknown, "broken")
		}
		return nil
	}
	if err := s.Sync(t.Context(), n); !errors.As(err, new(*UnreadError)) {
		t.Fatal(err)
	}
	read := func(byList int, when string) {
		t.Helper()
		c, err := s.ReadContainer(t.Context(), n, "c")
		p, podErr := s.ReadPod(t.Context(), n, "p")
		if err != nil || podErr != nil || c.PodID != "p" || c.ByListAlone() != broken["c"] || p.ByListAlone() != broken["p"] {
			t.Errorf("%s: %+v, %v, of %+v, %v", when, c, err, p, podErr)
		}
		if got := s.IDsByListAlone("p"); len(got) != byList || s.Described("p") == broken["p"] || s.Described("c") == broken["c"] {
			t.Errorf("%s %q are known by a list alone, want %d", when, got, byList)
		}
	}
	read(2, "with neither described")
	broken["c"] = false
	read(1, "with the container described")
	broken["p"] = false
	read(0, "with both described")
	if cpuShares(t, s, "c") == 0 {
		t.Error("the container has no CPU shares")
	}
}
