package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Resources reads what CRI calls LinuxContainerResources. 0 or "" means that
// the request does not say.
type Resources struct {
	object abi.Object
	base   abi.Field
}

func (r Resources) text(op string, f abi.Field) string { return readText(op, r.object, r.base+f) }

func (r Resources) number(op string, f abi.Field) int64 {
	v, _ := lookupInt64(op, r.object, r.base+f) // not readInt64: so the getters can be inlined
	return v
}

// Reported tells whether the host knows all of the resources. cri-dockerd does not report them of
// containers that are older than the proxy's process: the host then has those that the kernel
// shows, and a handler that reads another one, such as OOMScoreAdj or Unified, fails.
func (r Resources) Reported() bool {
	return Errno(hostGetI64(r.object, r.base+abi.OOMScoreAdj, unsafe.Pointer(&number))) != ErrUnsupported
}

// HugepageLimit returns the limit in bytes for a page size such as "2MB", in
// decimal, and whether there is one.
func (r Resources) HugepageLimit(pageSize string) (string, bool) {
	return readEntry("HugepageLimit", r.object, r.base+abi.HugepageLimits, pageSize)
}

// HugepageLimits ranges over the limits by page size.
func (r Resources) HugepageLimits() Entries {
	return readEntries("HugepageLimits", r.object, r.base+abi.HugepageLimits)
}

// Unified returns what the request asks to be written to a cgroup v2 file, and
// whether it asks.
func (r Resources) Unified(file string) (string, bool) {
	return readEntry("Unified", r.object, r.base+abi.Unified, file)
}

// Unifieds ranges over the cgroup v2 files that the request asks to be written.
func (r Resources) Unifieds() Entries {
	return readEntries("Unifieds", r.object, r.base+abi.Unified)
}

// MutableResources are the resources of a request that is on its way to the
// runtime, or of a [FoundContainer]. What is set does not show in the getters, which
// go on to say what the plugins before this one left. It needs [CapResources], and
// the unified map [CapUnified].
type MutableResources struct{ Resources }

// SetHugepageLimit sets the limit in bytes, in decimal, for a page size such as "2MB".
func (r MutableResources) SetHugepageLimit(pageSize, bytes string) error {
	return setEntry("SetHugepageLimit", r.object, r.base+abi.HugepageLimits, pageSize, bytes)
}

// DeleteHugepageLimit drops the limit for a page size, if it is there. Of a container that
// was looked up it is [ErrUnsupported]: its runtime takes nothing away.
func (r MutableResources) DeleteHugepageLimit(pageSize string) error {
	return deleteEntry("DeleteHugepageLimit", r.object, r.base+abi.HugepageLimits, pageSize)
}

// SetUnified asks the runtime to write a cgroup v2 file, one of those in the table "Cgroup
// files" of abi/ABI.md; others are refused with [ErrDenied]. On cgroup v1 it is
// refused with [ErrUnsupported], because runc fails the container for it.
func (r MutableResources) SetUnified(file, value string) error {
	return setEntry("SetUnified", r.object, r.base+abi.Unified, file, value)
}

// DeleteUnified drops a cgroup v2 file from the request, if it is there. Of a container
// that was looked up it is [ErrUnsupported], likewise.
func (r MutableResources) DeleteUnified(file string) error {
	return deleteEntry("DeleteUnified", r.object, r.base+abi.Unified, file)
}

func (r MutableResources) setNumber(op string, f abi.Field, v int64) error {
	return setInt64(op, r.object, r.base+f, v)
}

func (r MutableResources) setText(op string, f abi.Field, v string) error {
	return setText(op, r.object, r.base+f, v)
}
