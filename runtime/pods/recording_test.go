package pods

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A recording is the calls of one play of the scenario. See testdata/cri/README.md.
type recording struct {
	mu      sync.Mutex
	entries []entry
	read    map[string]bool // calls since the last point
}

// An entry is one call that succeeded, or the mark of a restart point.
type entry struct {
	Point    string          `json:"point,omitempty"`
	Method   string          `json:"method,omitempty"`
	Request  json.RawMessage `json:"request,omitempty"`
	Response json.RawMessage `json:"response,omitempty"`
}

func (r *recording) mark(point string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries = append(r.entries, entry{Point: point})
	r.read = map[string]bool{}
}

// record is a client interceptor. Of a question that is put again before the
// next point it keeps the first answer.
func (r *recording) record(ctx context.Context, method string, req, resp any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if err := invoke(ctx, method, req, resp, cc, opts...); err != nil {
		return err
	}
	e := entry{Method: path.Base(method), Request: marshal(req), Response: marshal(resp)}
	key := e.Method + string(e.Request)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !e.question() || !r.read[key] {
		r.entries = append(r.entries, e)
	}
	if r.read != nil {
		r.read[key] = true
	}
	return nil
}

func (e *entry) question() bool {
	return strings.HasSuffix(e.Method, "Status") || strings.HasPrefix(e.Method, "List")
}

// marshal is protojson without its random spaces.
func marshal(m any) json.RawMessage {
	b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m.(proto.Message))
	if err != nil {
		panic(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, b); err != nil {
		panic(err)
	}
	return compact.Bytes()
}

func (r *recording) write(t *testing.T, file, scrub string) {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(r.entries); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, pair := range strings.Split(scrub, ",") {
		if old, with, ok := strings.Cut(pair, ">"); ok {
			text = strings.ReplaceAll(text, old, with)
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, file string) []entry {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var entries []entry
	if err := json.Unmarshal(b, &entries); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return entries
}

// messages decodes an entry.
func (e *entry) messages(t testing.TB) (req, resp proto.Message) {
	t.Helper()
	decode := func(kind string, b []byte) proto.Message {
		typ, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("runtime.v1." + e.Method + kind))
		if err != nil {
			t.Fatal(err)
		}
		m := typ.New().Interface()
		if err := protojson.Unmarshal(b, m); err != nil {
			t.Fatalf("%s%s: %v", e.Method, kind, err)
		}
		return m
	}
	return decode("Request", e.Request), decode("Response", e.Response)
}

// answers is a backend that gives the recorded answers of one point.
type answers map[string]proto.Message

func (a answers) add(t testing.TB, e entry) {
	req, resp := e.messages(t)
	a[question(req)] = resp
}

func question(req proto.Message) string {
	return string(req.ProtoReflect().Descriptor().Name()) + string(marshal(req))
}

func answer[T proto.Message](a answers, req proto.Message) (T, error) {
	resp, ok := a[question(req)]
	if !ok {
		var none T
		return none, status.Error(codes.NotFound, "not recorded: "+question(req))
	}
	return resp.(T), nil
}

func (a answers) ListPodSandbox(_ context.Context, req *runtimeapi.ListPodSandboxRequest, _ ...grpc.CallOption) (*runtimeapi.ListPodSandboxResponse, error) {
	return answer[*runtimeapi.ListPodSandboxResponse](a, req)
}

func (a answers) PodSandboxStatus(_ context.Context, req *runtimeapi.PodSandboxStatusRequest, _ ...grpc.CallOption) (*runtimeapi.PodSandboxStatusResponse, error) {
	return answer[*runtimeapi.PodSandboxStatusResponse](a, req)
}

func (a answers) ListContainers(_ context.Context, req *runtimeapi.ListContainersRequest, _ ...grpc.CallOption) (*runtimeapi.ListContainersResponse, error) {
	return answer[*runtimeapi.ListContainersResponse](a, req)
}

func (a answers) ContainerStatus(_ context.Context, req *runtimeapi.ContainerStatusRequest, _ ...grpc.CallOption) (*runtimeapi.ContainerStatusResponse, error) {
	return answer[*runtimeapi.ContainerStatusResponse](a, req)
}
