package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/simulate"
)

// TestRequestsOfKubelet137 has the committed plugin look at all containers that kubelet 1.37 has made of
// Pods, which ask for memory.min and memory.low of 0. The plugin protects each by its request, as far as
// its score tells it.
func TestRequestsOfKubelet137(t *testing.T) {
	const gibi, mebi = 1 << 30, 1 << 20
	requests := map[string]int64{ // in bytes, by recording and container, as the Pods have them
		"guaranteed/app": 2 * gibi, "burstable/app": 64 * mebi, "burstable/helper": gibi,
		"podlevel/app": 2 * gibi, "podlevel/rest": 3 * gibi / 2, // with half of the 3 GiB that only the Pod requests, and up to the limit
		"sidecar/app": 200 * mebi, "sidecar/other": 100 * mebi, "sidecar/proxy": 100 * mebi, "sidecar/setup": 32 * mebi,
		"besteffort/app": 0,
	}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			pod, container, _ := strings.Cut(name, "/")
			file := "memory.low"
			if pod == "guaranteed" {
				file = "memory.min"
			}
			event := recorded(t, "../../runtime/kubelet/testdata/"+pod+".v2.json", container)
			event.Node.Memory = 16 * gibi // that of the recordings
			got, err := open(t, event).Run(t.Context())
			if err != nil || got.Err != nil {
				t.Fatal(err, got.Err)
			}
			var protects int64
			for _, w := range got.Writes {
				if strings.HasSuffix(w.Path, "memory.min") || strings.HasSuffix(w.Path, "memory.low") {
					if protects, err = strconv.ParseInt(w.After, 10, 64); err != nil || !strings.HasSuffix(w.Path, file) {
						t.Errorf("the plugin writes %+v, want %s alone", w, file)
					}
				}
			}
			if least := max(request-event.Node.Memory/500, 0); protects < least || protects > request {
				t.Errorf("%s is %d, want at most the request %d, and at least %d", file, protects, request, least)
			}
		})
	}
}

// recorded is the event of a container that kubelet creates, from a file with its messages.
func recorded(t *testing.T, file, container string) *simulate.Event {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var of struct {
		Sandbox    json.RawMessage            `json:"sandbox"`
		Containers map[string]json.RawMessage `json:"containers"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		t.Fatal(err)
	}
	config := of.Containers[container]
	if !bytes.Contains(config, []byte(`"memory.min"`)) || !bytes.Contains(config, []byte(`"memory.low"`)) {
		t.Fatalf("%s: kubelet asks for no memory.min and memory.low of container %s: %s", file, container, config)
	}
	request, err := json.Marshal(map[string]any{"podSandboxId": "sandbox", "config": config, "sandboxConfig": of.Sandbox})
	if err != nil {
		t.Fatal(err)
	}
	event, err := simulate.FromRequest(request, abi.PreCreateContainer, simulate.Setting{CgroupVersion: 2})
	if err != nil {
		t.Fatal(err)
	}
	return event
}
