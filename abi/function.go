package abi

// ValueType is the type of a WebAssembly value at the border.
type ValueType uint8

// Only these two cross the border.
const (
	I32 ValueType = iota + 1
	I64
)

// Function is the signature of a host function or of a guest's export.
type Function struct {
	Name    string
	Params  []ValueType
	Results []ValueType
}

// Functions lists what a guest may import from Module. ABI.md says what each does.
var Functions = []Function{
	{"get", []ValueType{I32, I32, I32, I32}, []ValueType{I32}},               // obj, field, buf, cap -> len
	{"get_i64", []ValueType{I32, I32, I32}, []ValueType{I32}},                // obj, field, out -> 0
	{"map_get", []ValueType{I32, I32, I32, I32, I32, I32}, []ValueType{I32}}, // obj, map, key, klen, buf, cap -> len
	{"map_dump", []ValueType{I32, I32, I32, I32}, []ValueType{I32}},          // obj, map, buf, cap -> len
	{"pod_find", []ValueType{I32, I32, I32}, []ValueType{I32}},               // kind, ptr, len -> handle
	{"container_list", []ValueType{I32, I32, I32}, []ValueType{I32}},         // pod, buf, cap -> len
	{"set_i64", []ValueType{I32, I32, I64}, []ValueType{I32}},                // obj, field, value -> 0
	{"set_bytes", []ValueType{I32, I32, I32, I32}, []ValueType{I32}},         // obj, field, ptr, len -> 0
	{"map_set", []ValueType{I32, I32, I32, I32, I32, I32}, []ValueType{I32}}, // obj, map, key, klen, value, vlen -> 0
	{"map_del", []ValueType{I32, I32, I32, I32}, []ValueType{I32}},           // obj, map, key, klen -> 0
	{"cgroup_set", []ValueType{I32, I32, I32, I32, I32}, []ValueType{I32}},   // obj, file, flen, value, vlen -> 0
	{"reject", []ValueType{I32, I32, I32}, []ValueType{I32}},                 // code, ptr, len -> 0
	{"fail", []ValueType{I32, I32}, nil},                                     // ptr, len
	{"abort", []ValueType{I32, I32}, nil},                                    // ptr, len; does not return
	{"config", []ValueType{I32, I32}, []ValueType{I32}},                      // buf, cap -> len
	{"log", []ValueType{I32, I32, I32}, nil},                                 // level, ptr, len
	{"now", nil, []ValueType{I64}},                                           // -> ns
}

// The exports of a guest. "memory" and ExportABI, ExportManifest (or the custom
// section) and ExportHook are required; the others are called if present.
const (
	ExportMemory     = "memory"
	ExportInitialize = "_initialize"  // () ; once, before anything else
	ExportABI        = "wp_abi"       // () -> i32 ; Version
	ExportManifest   = "wp_manifest"  // () -> i64 ; ptr<<32 | len of the manifest's JSON
	ExportConfigure  = "wp_configure" // () -> i32 ; 0, or negative with the reason given to fail
	ExportHook       = "wp_hook"      // (hook i32) -> i32 ; Continue, Reject, or negative with the reason given to fail
)

// What wp_hook returns when it does not fail.
const (
	Continue = 0
	Reject   = 1 // after a call of reject
)

// Kinds of look-up of pod_find.
const (
	ByPodID       = 0 // pod sandbox id -> a pod
	ByPodUID      = 1 // uid of the Kubernetes pod -> its newest sandbox
	ByPodName     = 2 // "namespace/name" -> its newest sandbox
	ByContainerID = 3 // container id -> a container
)

// Codes of reject: the gRPC code that the caller sees. 0 stands for FailedPrecondition.
const (
	RejectInvalidArgument    = 3
	RejectPermissionDenied   = 7
	RejectResourceExhausted  = 8
	RejectFailedPrecondition = 9
)

// Levels of log.
const (
	LogDebug = 0
	LogInfo  = 1
	LogWarn  = 2
	LogError = 3
)
