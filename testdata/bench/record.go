package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"github.com/wasmproxy/wasmproxy/testdata/bench/process"
)

// startRecorder records the plugin of one party until the node stops.
func (n *node) startRecorder(ctx context.Context) error {
	p, err := process.Start(n.path(logs), "recorder", nil, n.bin.wasmproxy, "plugin", "record", "01-measured",
		"--admin-socket="+n.path(recorded, "admin.sock"), "--for=24h", "--max=1Gi", "--rate=10000")
	if err != nil {
		return err
	}
	n.recorder, n.started = p, append(n.started, p)
	return p.Await(ctx, func(context.Context) error {
		said, err := os.ReadFile(p.Log)
		if err == nil && !bytes.Contains(said, []byte("\n")) {
			err = fmt.Errorf("%s has no line", p.Log)
		}
		return err
	})
}

// checkRecording tells whether each call of the plugin was recorded, but for few that came too fast.
func (n *node) checkRecording() error {
	said, err := os.ReadFile(n.recorder.Log)
	if err != nil {
		return err
	}
	got, want := bytes.Count(said, []byte(`"hook":"`+preCreate+`","time"`)), n.parties[recorded].asked[preCreate]
	if got > want || got < want*9/10 {
		return fmt.Errorf("%d calls were recorded, want %d", got, want)
	}
	return nil
}
