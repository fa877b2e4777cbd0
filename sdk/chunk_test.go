package sdk

import (
	"fmt"
	"strings"
	"testing"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/sdk/sdktest"
)

// TestTextsStay has a handler keep all that it reads, texts of all lengths around those of
// a chunk, and from call to call: no later read may write to it.
func TestTextsStay(t *testing.T) {
	want := map[string]string{}
	for n := range 300 {
		want[fmt.Sprint("k", n)] = strings.Repeat(string(rune('a'+n%26)), n*n%(2*chunk))
	}
	for _, kept := range []bool{false, true} {
		t.Run(fmt.Sprint("KeepMemory ", kept), func(t *testing.T) {
			var got []map[string]string
			register(t, func() {
				r := Plugin("p", "1").OnPostRunPodSandbox(func(p *PostRunPodSandbox) error {
					got = append(got, readTwice(p.Pod, want)...)
					return nil
				})
				if kept {
					r.KeepMemory()
				}
			})
			guest := sdktest.Native(t, "", nil)
			for range 2 {
				if _, err := (sdktest.Case{Hook: abi.PostRunPodSandbox, Pod: sdktest.Fields{"annotations": want}}).Call(t, guest); err != nil {
					t.Fatal(err)
				}
			}
			for _, read := range got {
				for key, value := range want {
					if read[key] != value {
						t.Fatalf("%s is %.20q of length %d, want %.20q of length %d", key, read[key], len(read[key]), value, len(value))
					}
				}
			}
		})
	}
}

// readTwice reads annotations one by one and all at once.
func readTwice(p Pod, keys map[string]string) []map[string]string {
	single, all := map[string]string{}, map[string]string{}
	for key := range keys {
		single[key], _ = p.Annotation(key)
	}
	for key, value := range p.Annotations() {
		all[key] = value
	}
	return []map[string]string{single, all}
}

// TestChunkOfKeptMemory holds a plugin that keeps its memory, and one text of each call
// with it, to a small chunk for each.
func TestChunkOfKeptMemory(t *testing.T) {
	register(t, func() { Plugin("p", "1").KeepMemory() })
	if refill(1); room != chunkKept {
		t.Errorf("a chunk has %d bytes, want %d", room, chunkKept)
	}
	if refill(chunkKept + 1); room != chunkKept+1 {
		t.Errorf("a chunk for %d bytes has %d", chunkKept+1, room)
	}
}
