package plugin

import (
	"context"
	"iter"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
)

// NoEvent is an Event that has nothing, as a plugin sees before its first one: all that is asked for is abi.NotFound. Others
// embed it and have something.
type NoEvent struct{}

// Hook returns 0, which is no hook.
func (NoEvent) Hook() abi.Hook { return 0 }

// Time returns the beginning of the Unix epoch.
func (NoEvent) Time() time.Time { return time.Unix(0, 0) }

func (NoEvent) Int64(abi.Object, abi.Field) (int64, abi.Errno) { return 0, abi.NotFound }
func (NoEvent) Text(abi.Object, abi.Field) (string, abi.Errno) { return "", abi.NotFound }
func (NoEvent) Lookup(abi.Object, abi.Field, string) (string, abi.Errno) {
	return "", abi.NotFound
}
func (NoEvent) Entries(abi.Object, abi.Field) (iter.Seq2[string, string], abi.Errno) {
	return nil, abi.NotFound
}
func (NoEvent) List(context.Context, abi.Object, abi.Field) ([]string, abi.Errno) {
	return nil, abi.NotFound
}
func (NoEvent) Raw(abi.CapabilitySet) ([]byte, abi.Errno) { return nil, abi.NotFound }
func (NoEvent) ReadFiles(_ context.Context, _ abi.Object, files []string, each func(string, abi.Errno)) {
	for range files {
		each("", abi.NotFound)
	}
}
func (NoEvent) Kind(o abi.Object) abi.Object                           { return o }
func (NoEvent) Within(abi.Object, *abi.Match) bool                     { return false }
func (NoEvent) Own(abi.Object) bool                                    { return false }
func (NoEvent) Secrets(abi.CapabilitySet, int) ([]string, int)         { return nil, 0 }
func (NoEvent) Find(int32, string, *abi.Match) (abi.Object, abi.Errno) { return 0, abi.NotFound }
func (NoEvent) Pods(string, *abi.Match) ([]abi.Object, int, abi.Errno) { return nil, 0, abi.NotFound }
func (NoEvent) Containers(abi.Object, *abi.Match) ([]abi.Object, int, abi.Errno) {
	return nil, 0, abi.NotFound
}
