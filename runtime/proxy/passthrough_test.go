package proxy_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// methods returns the descriptors of every RPC of CRI.
func methods(t *testing.T) map[string]protoreflect.MethodDescriptor {
	t.Helper()
	all := make(map[string]protoreflect.MethodDescriptor)
	services := runtimeapi.File_staging_src_k8s_io_cri_api_pkg_apis_runtime_v1_api_proto.Services()
	for i := range services.Len() {
		for j := range services.Get(i).Methods().Len() {
			m := services.Get(i).Methods().Get(j)
			all["/"+string(services.Get(i).FullName())+"/"+string(m.Name())] = m
		}
	}
	if len(all) != 43 {
		t.Fatalf("CRI has %d RPCs, want 43", len(all))
	}
	return all
}

// TestEveryMethod sends random messages through every RPC and compares bytes
// on both sides, with no hook and with interceptors that change nothing.
func TestEveryMethod(t *testing.T) {
	methods := methods(t)
	pass := func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
		return next(ctx, call.Request)
	}
	for mode, intercept := range map[string]func(t *testing.T, m protoreflect.MethodDescriptor) cri.Interceptor{
		"unhooked": func(*testing.T, protoreflect.MethodDescriptor) cri.Interceptor { return nil },
		"no-op":    func(*testing.T, protoreflect.MethodDescriptor) cri.Interceptor { return pass },
		"decoded":  decoding,
		"observed": observing,
	} {
		t.Run(mode, func(t *testing.T) {
			backend := &scripted{}
			conn := through(t, backend.serve, func(opts *proxy.Options) {
				opts.Router = func(method string) cri.Interceptor {
					m := methods[method]
					if m.IsStreamingClient() || m.IsStreamingServer() {
						return nil
					}
					return intercept(t, m)
				}
			})
			for name, m := range methods {
				for seed := range uint64(10) {
					exchange(t, conn, backend, name, m, seed)
				}
			}
		})
	}
}

// exchange makes one call with random messages: one request, and one response
// or, of a stream, three.
func exchange(t *testing.T, conn *grpc.ClientConn, backend *scripted, method string, m protoreflect.MethodDescriptor, seed uint64) {
	t.Helper()
	g := generator{rand.New(rand.NewPCG(seed, uint64(len(method))))}
	request := g.message(m.Input(), 3)
	answers := [][]byte{g.message(m.Output(), 3)}
	if m.IsStreamingServer() {
		answers = append(answers, g.message(m.Output(), 3), g.message(m.Output(), 3))
	}
	backend.script(answers)
	stream := open(t, withTimeout(t, time.Minute), conn, method)
	if err := sendAll(stream, request); err != nil {
		t.Fatal(err)
	}
	stream.CloseSend()
	got, err := receiveAll(stream)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	if b := backend.received(); !slices.EqualFunc(b, [][]byte{request}, bytes.Equal) {
		t.Errorf("%s: request changed: sent %x, received %x", method, request, b)
	}
	if !slices.EqualFunc(got, answers, bytes.Equal) {
		t.Errorf("%s: response changed: sent %x, received %x", method, answers, got)
	}
}

// decoding decodes both messages and forwards the frames they came in.
func decoding(t *testing.T, m protoreflect.MethodDescriptor) cri.Interceptor {
	return func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
		mustDecode(t, m.Input(), call.Request)
		resp, err := next(ctx, call.Request)
		if err == nil {
			mustDecode(t, m.Output(), resp)
		}
		return resp, err
	}
}

// observing decodes both messages after the answer has been sent.
func observing(t *testing.T, m protoreflect.MethodDescriptor) cri.Interceptor {
	var late sync.WaitGroup
	t.Cleanup(late.Wait)
	return func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
		resp, err := next(ctx, call.Request)
		if err == nil {
			late.Go(func() {
				time.Sleep(10 * time.Millisecond)
				mustDecode(t, m.Input(), call.Request)
				mustDecode(t, m.Output(), resp)
			})
		}
		return resp, err
	}
}

func mustDecode(t *testing.T, d protoreflect.MessageDescriptor, f *cri.Frame) {
	typ, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Error(err)
		return
	}
	m := typ.New().Interface()
	if err := f.Decode(m); err != nil {
		t.Error(err)
	}
	if len(m.ProtoReflect().GetUnknown()) == 0 {
		t.Errorf("%s: unknown fields were lost", d.FullName())
	}
}

// TestRandomMessages holds the generator to its word: what it makes would not
// survive decoding and encoding as the same bytes, and has unknown fields
// inside as well.
func TestRandomMessages(t *testing.T) {
	for seed := range uint64(20) {
		g := generator{rand.New(rand.NewPCG(seed, 0))}
		var m runtimeapi.CreateContainerRequest
		sent := g.message(m.ProtoReflect().Descriptor(), 3)
		if err := proto.Unmarshal(sent, &m); err != nil {
			t.Fatal(err)
		}
		if again, err := proto.Marshal(&m); err != nil || bytes.Equal(again, sent) {
			t.Errorf("seed %d: encoding again gives the same bytes, %v", seed, err)
		}
		if len(m.Config.ProtoReflect().GetUnknown()) == 0 {
			t.Errorf("seed %d: nothing unknown in config", seed)
		}
	}
}

// scripted is a backend that notes what it gets and answers as told.
type scripted struct {
	mu      sync.Mutex
	answers [][]byte
	got     [][]byte
}

func (s *scripted) script(answers [][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers, s.got = answers, nil
}

func (s *scripted) received() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got
}

func (s *scripted) serve(_ string, stream grpc.ServerStream) error {
	got, err := receiveAll(stream)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = got
	return sendAll(stream, s.answers...)
}

// TestUnknownMethods uses methods that no CRI has, with bytes that are no
// protobuf.
func TestUnknownMethods(t *testing.T) {
	conn := through(t, echo)
	for _, method := range []string{"/runtime.v1.RuntimeService/NotYet", "/future.v9.NotYetInvented/Unary"} {
		want := "\xff\xff\xff not protobuf " + method
		got, err := invoke(withTimeout(t, time.Minute), conn, method, []byte(want))
		if err != nil || string(got) != want {
			t.Errorf("%s answered %q, %v", method, got, err)
		}
	}
	stream := open(t, withTimeout(t, time.Minute), conn, chat)
	for i := range 5 {
		want := strings.Repeat("message", i)
		if err := sendAll(stream, []byte(want)); err != nil {
			t.Fatal(err)
		}
		var got []byte
		if err := stream.RecvMsg(&got); err != nil || string(got) != want {
			t.Fatalf("message %d of a bidirectional stream came back as %q, %v", i, got, err)
		}
	}
	stream.CloseSend()
	if rest, err := receiveAll(stream); err != nil || len(rest) != 0 {
		t.Errorf("after the last message came %q, %v", rest, err)
	}
}

// TestImageBackend routes image services, of any version, to a backend of
// their own.
func TestImageBackend(t *testing.T) {
	name := func(name string) func(string, grpc.ServerStream) error {
		return func(_ string, stream grpc.ServerStream) error { return sendAll(stream, []byte(name)) }
	}
	images := socketPath(t)
	startBackend(t, images, name("images"))
	conn := through(t, name("runtime"), func(opts *proxy.Options) { opts.ImageBackend = dial(t, images) })
	for method, want := range map[string]string{
		version:                             "runtime",
		listImages:                          "images",
		"/runtime.v2.ImageService/NotYet":   "images",
		"/runtime.v1.NotAnImageService/Get": "runtime",
		chat:                                "runtime",
	} {
		got, err := invoke(withTimeout(t, time.Minute), conn, method, nil)
		if err != nil || string(got) != want {
			t.Errorf("%s went to %q, %v; want %s", method, got, err, want)
		}
	}
}
