package abi

// ValueType is the type of a WebAssembly value at the border.
type ValueType uint8

// Only these two cross the border.
const (
	I32 ValueType = iota + 1
	I64
)

// Function is the signature of a host function.
type Function struct {
	Name   string
	Params []Param
	Result ValueType // 0 if there is none
	Needs  Capability
}

// Param is a parameter. Its name is for people and generated code.
type Param struct {
	Name string
	Type ValueType
}

func i32s(names ...string) []Param {
	params := make([]Param, len(names))
	for i, name := range names {
		params[i] = Param{name, I32}
	}
	return params
}

// thenI64 makes the last one an i64. TinyGo works it out when it compiles, so that a
// guest does not carry the table.
func thenI64(params []Param) []Param {
	params[len(params)-1].Type = I64
	return params
}

// Functions lists what a guest may import from Module. ABI.md says what each does.
// A write needs the capability of its field besides, or on a handle UpdateOthers.
var Functions = []Function{
	// Reading. All but get_i64 return a length.
	{"get", i32s("object", "field", "buf", "cap"), I32, 0},
	{"get_i64", i32s("object", "field", "out"), I32, 0},
	{"map_get", i32s("object", "field", "key", "key_len", "buf", "cap"), I32, 0},
	{"map_dump", i32s("object", "field", "buf", "cap"), I32, 0},
	{"list_dump", i32s("object", "field", "buf", "cap"), I32, 0},
	{"cri_raw", i32s("buf", "cap"), I32, ReadRaw},
	{"cgroup_get", i32s("object", "file", "file_len", "buf", "cap"), I32, CgroupRead},

	// The store. pod_find returns a handle, the others a length.
	{"pod_find", i32s("kind", "name", "name_len"), I32, StoreRead},
	{"pod_list", i32s("namespace", "namespace_len", "buf", "cap"), I32, StoreRead},
	{"container_list", i32s("pod", "buf", "cap"), I32, StoreRead},

	// Writing. All return 0.
	{"set_i64", thenI64(i32s("object", "field", "value")), I32, 0},
	{"set_bytes", i32s("object", "field", "value", "value_len"), I32, 0},
	{"map_set", i32s("object", "field", "key", "key_len", "value", "value_len"), I32, 0},
	{"map_del", i32s("object", "field", "key", "key_len"), I32, 0},
	{"list_set", i32s("object", "field", "list", "list_len"), I32, 0},
	{"list_add", i32s("object", "field", "element", "element_len"), I32, 0},
	{"list_del", i32s("object", "field", "key", "key_len"), I32, 0},
	{"cgroup_set", i32s("object", "file", "file_len", "value", "value_len"), I32, CgroupWrite},

	// The answer.
	{"reject", i32s("code", "reason", "reason_len"), I32, 0},
	{"fail", i32s("reason", "reason_len"), 0, 0},
	{"abort", i32s("reason", "reason_len"), 0, 0}, // does not return

	// The plugin's own.
	{"config", i32s("buf", "cap"), I32, 0},
	{"log", i32s("level", "text", "text_len"), 0, 0},
	{"log_level", nil, I32, 0},
	{"metric", thenI64(i32s("kind", "name", "name_len", "value")), I32, WriteMetric},
	{"kv_get", i32s("key", "key_len", "buf", "cap"), I32, StateKV},
	{"kv_set", i32s("key", "key_len", "value", "value_len"), I32, StateKV},
	{"kv_del", i32s("key", "key_len"), I32, StateKV},

	// The world, as far as it is the event's.
	{"now", nil, I64, 0},
	{"random", i32s("buf", "len"), I32, 0},
	{"feature", i32s("feature"), I32, 0},
}

// Export is what a guest exports.
type Export struct {
	Name     string
	Params   []ValueType
	Result   ValueType // 0 if there is none
	Required bool
}

// The exports of a guest. "memory" and ExportABI, ExportManifest (or the custom
// section) and ExportHook are required; the others are called if present.
const (
	ExportMemory     = "memory"       // the only one; the guest's own, not imported
	ExportInitialize = "_initialize"  // called once, before anything else
	ExportABI        = "wp_abi"       // `major << 16 | minor` of the ABI that the guest was built for, now 65536
	ExportManifest   = "wp_manifest"  // required without the custom section; `pointer << 32 | length` of the [manifest](#manifest), which stays valid while the instance lives
	ExportConfigure  = "wp_configure" // 0, or negative with the reason given to `fail`
	ExportHook       = "wp_hook"      // takes the number of a hook; 0, 1, or negative with the reason given to `fail`
)

// What wp_hook returns when it does not fail.
const (
	Continue = 0 // the call goes on
	Reject   = 1 // the call is refused; reject was called
)

// Kinds of look-up of pod_find.
const (
	ByPodID       = 0 // the id of a pod sandbox; gives that pod
	ByPodUID      = 1 // the uid of a Kubernetes pod; gives its newest sandbox
	ByPodName     = 2 // `namespace/name` of a Kubernetes pod; gives its newest sandbox
	ByContainerID = 3 // the id of a container; gives that container
)

// Codes of reject: the gRPC code that the caller sees. 0 stands for FailedPrecondition.
const (
	RejectInvalidArgument    = 3 // InvalidArgument
	RejectPermissionDenied   = 7 // PermissionDenied
	RejectResourceExhausted  = 8 // ResourceExhausted
	RejectFailedPrecondition = 9 // FailedPrecondition, as 0 is
)

// Levels of log.
const (
	LogDebug = 0 // debug
	LogInfo  = 1 // info
	LogWarn  = 2 // warn
	LogError = 3 // error
)

// Kinds of metric.
const (
	MetricAdd     = 0 // a counter grows by the value, which is not negative
	MetricSet     = 1 // a gauge is the value
	MetricObserve = 2 // a histogram takes the value
)

// Exports is the table of a guest's functions. The memory beside them is required.
var Exports = []Export{
	{ExportInitialize, nil, 0, false},
	{ExportABI, nil, I32, true},
	{ExportManifest, nil, I64, false},
	{ExportConfigure, nil, I32, false},
	{ExportHook, []ValueType{I32}, I32, true},
}
