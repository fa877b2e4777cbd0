package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
)

// TestRecordCommand has the lines of the admin socket on stdout, and the end for people on stderr. Whoever interrupts the
// command gets a last line, too.
func TestRecordCommand(t *testing.T) {
	dir, err := os.MkdirTemp("", "wp")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "a")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	const begin = `{"recording":1,"plugin":"x","node":{}}` + "\n" + `{"hook":"Tick","time":0,"asked":[],"dropped":{"rate":2}}` + "\n"
	serve, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- admin.Serve(serve, l, admin.Sources{Observer: observe.Discard(), Record: func(ctx context.Context, id string, o recording.Options, out io.Writer) error {
			if o.Max != 1<<20 || o.Call != 2<<10 || !o.Ticks || o.Env {
				t.Errorf("the options are %+v", o)
			}
			_, err := io.WriteString(out, begin)
			switch id {
			case "ends":
				_, err = io.WriteString(out, `{"end":"bytes","calls":1}`+"\n")
			case "waits":
				<-ctx.Done()
			}
			return err
		}})
	}()
	for id, want := range map[string]struct {
		last, said string
		code       int
	}{
		"ends":  {`{"end":"bytes","calls":1}`, "1 calls recorded: it has the bytes of --max", exitOK},
		"waits": {`{"end":"interrupted","calls":1,"dropped":{"rate":2}}`, "it was interrupted; 2 calls left out: 2 exceeded --rate", exitOK},
		"falls": {"", "the connection to the proxy ended after 1 calls; what was written can be replayed", exitFailure},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &awaited{has: []byte("Tick"), then: func() {
			if id == "waits" {
				cancel()
			}
		}}
		var errs bytes.Buffer
		args := []string{"plugin", "record", id, "--admin-socket", socket, "--max", "1Mi", "--max-call", "2Ki", "--ticks"}
		code := run(ctx, newRoot(""), args, out, &errs)
		cancel()
		if got := strings.TrimSpace(strings.TrimPrefix(out.String(), begin)); got != want.last || code != want.code || !strings.Contains(errs.String(), want.said) {
			t.Errorf("%s: exit code %d, the last line is %s, stderr %s", id, code, got, errs.String())
		}
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// A recording is replayed that has more bytes than other input may have: record writes up to 1 GiB.
func TestReplayReadsALongRecording(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long.jsonl")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(`{"recording":1,"plugin":"x","node":{}}` + "\n")
	call := `{"hook":"Tick","time":0,"asked":[],"error":"` + strings.Repeat("x", maxInput/5) + `"}` + "\n"
	for range 5 {
		_, more := f.WriteString(call)
		err = errors.Join(err, more)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	args := []string{"plugin", "replay", file, "../../plugins-wasm/default-annotations/default-annotations.wasm"}
	if run(t.Context(), newRoot(""), args, &out, &errs); !strings.Contains(out.String(), "5 calls: ") {
		t.Errorf("stdout %s, stderr %s", out.String(), errs.String())
	}
}

// awaited is a buffer that calls then once it has a text.
type awaited struct {
	bytes.Buffer
	has  []byte
	then func()
	once sync.Once
}

func (a *awaited) Write(b []byte) (int, error) {
	n, err := a.Buffer.Write(b)
	if bytes.Contains(a.Bytes(), a.has) {
		a.once.Do(a.then)
	}
	return n, err
}
