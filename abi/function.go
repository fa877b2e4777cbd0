package abi

// The exports of a guest. "memory" and ExportABI, ExportManifest (or the custom
// section) and ExportHook are required; the others are called if present.
const (
	ExportMemory     = "memory"       // the only one; the guest's own, not imported
	ExportInitialize = "_initialize"  // called once, before anything else
	ExportABI        = "wp_abi"       // `major << 16 | minor` of the ABI that the guest was built for, now 65536
	ExportManifest   = "wp_manifest"  // required without the custom section; `pointer << 32 | length` of the [manifest](#manifest), kept while the instance lives
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
