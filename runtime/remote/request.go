package remote

import (
	"unicode/utf8"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

func podMeta(ev plugin.Event) *runtimeapi.PodSandboxMetadata {
	return &runtimeapi.PodSandboxMetadata{
		Name:      text(ev, abi.Pod, abi.PodName),
		Uid:       text(ev, abi.Pod, abi.PodUID),
		Namespace: text(ev, abi.Pod, abi.PodNamespace),
		Attempt:   uint32(number(ev, abi.Pod, abi.PodAttempt)),
	}
}

// text and number answer the zero value, as protobuf does, for what the event lacks.
func text(ev plugin.Event, o abi.Object, f abi.Field) string {
	s, _ := ev.Text(o, f)
	return s
}

func number(ev plugin.Event, o abi.Object, f abi.Field) int64 {
	n, _ := ev.Int64(o, f)
	return n
}

// entries returns a map of the event; of a name that occurs more than once, the
// last. What is not UTF-8 cannot be sent and is left out. An environment may
// hold such a value.
func entries(ev plugin.Event, o abi.Object, f abi.Field) map[string]string {
	all, errno := ev.Entries(o, f)
	if errno != abi.OK {
		return nil
	}
	sent := map[string]string{}
	for k, v := range all {
		if canSend(k, v) {
			sent[k] = v
		} else {
			delete(sent, k) // an earlier one of the name is not the one that counts
		}
	}
	return sent
}

// canSend reports whether the protocol can carry an entry.
func canSend(key, value string) bool { return utf8.ValidString(key) && utf8.ValidString(value) }
