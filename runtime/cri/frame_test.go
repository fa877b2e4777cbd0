package cri_test

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
)

// receive makes the frame that gRPC would, of a message that came in pieces.
func receive(t testing.TB, pieces ...[]byte) *cri.Frame {
	t.Helper()
	var data mem.BufferSlice
	for _, p := range pieces {
		data = append(data, mem.Copy(p, mem.DefaultBufferPool()))
	}
	f := new(cri.Frame)
	if err := (cri.Codec{}).Unmarshal(data, f); err != nil {
		t.Fatal(err)
	}
	data.Free() // as gRPC does: the frame has its own reference
	return f
}

// send returns the bytes that gRPC would write.
func send(t testing.TB, f *cri.Frame) []byte {
	t.Helper()
	data, err := cri.Codec{}.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Free()
	return data.Materialize()
}

// unusual is a message as no encoder would write it: an unknown field first,
// one field twice, and something unknown inside.
func unusual() []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 900, protowire.VarintType), 7)
	for _, id := range []string{"first", "second"} {
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), id)
	}
	config := protowire.AppendString(protowire.AppendTag(nil, 901, protowire.BytesType), "\xff\xfe")
	return protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), config)
}

func TestFrameDecode(t *testing.T) {
	want := unusual()
	f := receive(t, want[:3], want[3:])
	var m runtimeapi.CreateContainerRequest
	if err := f.Decode(&m); err != nil {
		t.Fatal(err)
	}
	if m.PodSandboxId != "second" || len(m.ProtoReflect().GetUnknown()) == 0 || len(m.Config.ProtoReflect().GetUnknown()) == 0 {
		t.Errorf("decoded %v", &m)
	}
	m.PodSandboxId = "changed"
	for range 2 {
		if got := send(t, f); !bytes.Equal(got, want) {
			t.Errorf("after decoding the frame is %x, want %x", got, want)
		}
	}
	if f.Len() != len(want) {
		t.Errorf("length is %d, want %d", f.Len(), len(want))
	}
}

func TestNewFrame(t *testing.T) {
	var m, again runtimeapi.CreateContainerRequest
	if err := receive(t, unusual()).Decode(&m); err != nil {
		t.Fatal(err)
	}
	m.PodSandboxId = "changed"
	f, err := cri.NewFrame(&m)
	if err != nil {
		t.Fatal(err)
	}
	if err := receive(t, send(t, f)).Decode(&again); err != nil || !proto.Equal(&m, &again) {
		t.Errorf("%v became %v, %v", &m, &again, err)
	}
}

func TestFrameErrors(t *testing.T) {
	const name = "runtime.v1.CreateContainerRequest"
	var m runtimeapi.CreateContainerRequest
	if err := receive(t, []byte("\xff")).Decode(&m); err == nil || !strings.Contains(err.Error(), "decoding "+name) {
		t.Errorf("decoding rubbish gives %v", err)
	}
	m.PodSandboxId = "\xff"
	if _, err := cri.NewFrame(&m); err == nil || !strings.Contains(err.Error(), "encoding "+name) {
		t.Errorf("encoding rubbish gives %v", err)
	}
}

// TestFrameEmpty: the zero frame is a message, and a freed one is too.
func TestFrameEmpty(t *testing.T) {
	freed := receive(t, unusual())
	freed.Free()
	for _, f := range []*cri.Frame{{}, freed, receive(t)} {
		var m runtimeapi.VersionRequest
		if err := f.Decode(&m); err != nil || f.Len() != 0 || len(send(t, f)) != 0 {
			t.Errorf("the empty frame has %d bytes, %v", f.Len(), err)
		}
	}
}

// TestFrameShared reads and sends one frame from many goroutines.
func TestFrameShared(t *testing.T) {
	want := bytes.Repeat(unusual(), 1000)
	f := receive(t, want[:10_000], want[10_000:])
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				var m runtimeapi.CreateContainerRequest
				if err := f.Decode(&m); err != nil || !bytes.Equal(send(t, f), want) {
					t.Errorf("the frame changed, %v", err)
				}
			}
		})
	}
	all.Wait()
}

// TestCodecMessages: generated clients work on the same connection.
func TestCodecMessages(t *testing.T) {
	want := &runtimeapi.VersionRequest{Version: "v1"}
	data, err := cri.Codec{}.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got runtimeapi.VersionRequest
	if err := (cri.Codec{}).Unmarshal(data, &got); err != nil || !proto.Equal(want, &got) {
		t.Errorf("%v became %v, %v", want, &got, err)
	}
}

// TestWhenFreed: it is noticed once that gRPC has freed the bytes, whatever buffers
// they are in, and the frame itself stays.
func TestWhenFreed(t *testing.T) {
	encoded, err := cri.NewFrame(&runtimeapi.VersionRequest{Version: strings.Repeat("v", 5000)})
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("0123456789"), 5000)
	for name, f := range map[string]*cri.Frame{
		"received": receive(t, large, large[:10]), "tiny pieces": receive(t, large[:1], large[1:9]), "encoded": encoded, "empty": new(cri.Frame),
	} {
		want, freed := send(t, f), 0
		data, err := cri.Codec{}.Marshal(f.WhenFreed(func() { freed++ }))
		if err != nil || !bytes.Equal(data.Materialize(), want) {
			t.Errorf("%s: the bytes are others, %v", name, err)
		}
		if len(want) > 1<<10 && freed != 0 {
			t.Errorf("%s: freed while gRPC has the bytes", name)
		}
		data.Free()
		if freed != 1 {
			t.Errorf("%s: freed was called %d times", name, freed)
		}
		if !bytes.Equal(send(t, f), want) {
			t.Errorf("%s: the frame changed", name)
		}
	}
}

// TestWhenDropped: gRPC frees no message that it is given for a stream that was reset a
// moment before. What such a message takes must come back all the same.
func TestWhenDropped(t *testing.T) {
	f, freed := receive(t, make([]byte, 1<<20)), make(chan struct{}, 2)
	func() {
		if _, err := (cri.Codec{}).Marshal(f.WhenFreed(func() { freed <- struct{}{} })); err != nil {
			t.Fatal(err)
		}
	}()
	for tries := 0; len(freed) == 0; tries++ {
		if tries == 1000 {
			t.Fatal("nobody noticed that the message was dropped")
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}

// FuzzFrame decodes any bytes, in two pieces, as the messages that are most
// often changed. What can be decoded must survive encoding, unknown fields
// included, and the frame itself must stay as it was.
func FuzzFrame(f *testing.F) {
	f.Add([]byte{}, uint(0))
	f.Add(unusual(), uint(5))
	if b, err := proto.Marshal(&runtimeapi.UpdateContainerResourcesRequest{
		ContainerId: "c", Linux: &runtimeapi.LinuxContainerResources{CpuShares: 2, Unified: map[string]string{"memory.high": "max"}},
	}); err == nil {
		f.Add(b, uint(1))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint) {
		cut %= uint(len(data)) + 1
		frame := receive(t, data[:cut], data[cut:])
		for _, m := range []proto.Message{
			new(runtimeapi.RunPodSandboxRequest), new(runtimeapi.CreateContainerRequest), new(runtimeapi.UpdateContainerResourcesRequest),
		} {
			if frame.Decode(m) == nil {
				checkEncoding(t, m)
			}
		}
		if got := send(t, frame); !bytes.Equal(got, data) {
			t.Errorf("the frame is %x, came as %x", got, data)
		}
	})
}

func checkEncoding(t *testing.T, m proto.Message) {
	t.Helper()
	again := m.ProtoReflect().New().Interface()
	f, err := cri.NewFrame(m)
	if err == nil {
		err = f.Decode(again)
	}
	if err != nil || !proto.Equal(m, again) {
		t.Errorf("%v became %v, %v", m, again, err)
	}
}
