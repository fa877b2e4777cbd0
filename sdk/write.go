package sdk

import "github.com/wasmproxy/wasmproxy/abi"

func setEntry(op string, o abi.Object, f abi.Field, key, value string) error {
	return check(op, key, hostMapSet(o, f, key, value))
}

func deleteEntry(op string, o abi.Object, f abi.Field, key string) error {
	return check(op, key, hostMapDel(o, f, key))
}

func setText(op string, o abi.Object, f abi.Field, value string) error {
	return check(op, "", hostSetBytes(o, f, value))
}

func setInt64(op string, o abi.Object, f abi.Field, value int64) error {
	return check(op, "", hostSetI64(o, f, value))
}

func setList(op string, o abi.Object, f abi.Field, list []string) error {
	return check(op, "", hostListSet(o, f, string(abi.AppendList(nil, list))))
}

// addElement adds an element to a set of the event's container.
func addElement(op, key string, f abi.Field, element string) error {
	return check(op, key, hostListAdd(abi.Container, f, element))
}

func deleteElement(op, key string, f abi.Field) error {
	return check(op, key, hostListDel(abi.Container, f, key))
}

func setCgroup(o abi.Object, file, value string) error {
	return check("SetCgroup", file, hostCgroupSet(o, file, value))
}

// podFiles is what a hook embeds that may write the pod's cgroup files.
type podFiles struct{}

// SetCgroup asks for a value of a file of the pod's cgroup. Files go by their cgroup v2 names, on v1 too. The table "Cgroup files" of
// abi/ABI.md lists them, with their values.
func (podFiles) SetCgroup(file, value string) error {
	return setCgroup(abi.Pod, file, value)
}

// containerFiles is what a hook embeds that may write the container's cgroup files.
type containerFiles struct{}

// SetCgroup asks for a value of a file of the container's cgroup, such as cpu.idle. Files go by their cgroup v2 names, on v1 too. The table
// "Cgroup files" of abi/ABI.md lists them, with their values. Before the container runs the
// proxy notes the value, and writes it when the container was started.
func (containerFiles) SetCgroup(file, value string) error {
	return setCgroup(abi.Container, file, value)
}

// RejectCode is the gRPC code that the caller of a refused call sees.
type RejectCode int32

// The codes of Reject.
const (
	InvalidArgument    RejectCode = abi.RejectInvalidArgument
	PermissionDenied   RejectCode = abi.RejectPermissionDenied
	ResourceExhausted  RejectCode = abi.RejectResourceExhausted
	FailedPrecondition RejectCode = abi.RejectFailedPrecondition
)

// rejected tells that the call that runs was refused by the plugin.
var rejected bool

// rejection is what Reject returns for a handler to return.
type rejection struct{}

func (rejection) Error() string { return "rejected" }

// refusal is what a hook embeds that may refuse the call.
type refusal struct{}

// Reject refuses the call, whatever the failure policy; the caller is told the
// reason. The handler returns what Reject returns:
//
//	return c.Reject(sdk.PermissionDenied, "privileged pods run on other nodes")
func (refusal) Reject(code RejectCode, reason string) error {
	if err := check("Reject", "", hostReject(int32(code), reason)); err != nil {
		return err
	}
	rejected = true
	return rejection{}
}
