package sdk

import (
	"unsafe"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Level is the weight of a log line.
type Level int32

// The levels of Log.
const (
	LevelDebug Level = abi.LogDebug
	LevelInfo  Level = abi.LogInfo
	LevelWarn  Level = abi.LogWarn
	LevelError Level = abi.LogError
)

// Log writes a line to the proxy's log, which adds the plugin, the hook and the
// pod. Lines over the host's limit are dropped and counted. Environment
// variables may be secrets: do not log them.
func Log(level Level, message string) { hostLog(int32(level), message) }

// Logs reports whether the proxy keeps lines of a level, so that a plugin can spare itself others.
func Logs(level Level) bool { return int32(level) >= hostLogLevel() }

// Config returns the plugin's configuration as the operator wrote it, "" if
// there is none.
func Config() string {
	n := hostConfig(free, room)
	for ; n > room; n = hostConfig(free, room) {
		refill(n)
	}
	missing("Config", "", n)
	return cut(n)
}

// Now returns the event's time in nanoseconds since the Unix epoch. It does not
// move while a handler runs.
func Now() int64 { return hostNow() }

// Random fills b with numbers that follow from the plugin and the event, the same
// for the same. They are not for keys.
func Random(b []byte) error {
	for len(b) > 0 {
		n := min(len(b), 256)
		if err := check("Random", "", hostRandom(unsafe.Pointer(unsafe.SliceData(b)), int32(n))); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// Feature is something that nodes and proxies may lack.
type Feature = abi.Feature

// The features.
const (
	FeatureCgroupV2    = abi.FeatureCgroupV2    // the node has cgroup v2
	FeatureCgroupFiles = abi.FeatureCgroupFiles // the proxy reads and writes cgroup files
	FeatureUpdate      = abi.FeatureUpdate      // writes on found containers are carried out
	FeatureKV          = abi.FeatureKV          // values survive a reload of the plugin
)

// HasFeature tells whether this node and proxy have a feature.
func HasFeature(f Feature) bool { return hostFeature(f) > 0 }

// Request returns the request of the call as protobuf, nothing where there is none.
// It needs [CapCRIRaw]. Environment variables and credentials are not in it without
// [CapEnv] and [CapCredentials].
func Request() []byte {
	n := hostCRIRaw(free, room)
	for ; n > room; n = hostCRIRaw(free, room) {
		refill(n)
	}
	missing("Request", "", n)
	request := cut(n)
	return unsafe.Slice(unsafe.StringData(request), len(request)) // nobody else has these bytes
}

// MetricAdd adds to a counter, delta being 0 or more. Names are of small letters,
// digits and underscores, with labels as in requests_total{code="200"}. It needs
// [CapMetric]. A value for a name that is no counter, or for more than 64 names, is dropped
// without an error, and the host counts it.
func MetricAdd(name string, delta int64) error {
	return check("MetricAdd", name, hostMetric(abi.MetricAdd, name, delta))
}

// MetricSet sets a gauge. It needs [CapMetric].
func MetricSet(name string, value int64) error {
	return check("MetricSet", name, hostMetric(abi.MetricSet, name, value))
}

// MetricObserve adds a value to a histogram. It needs [CapMetric].
func MetricObserve(name string, value int64) error {
	return check("MetricObserve", name, hostMetric(abi.MetricObserve, name, value))
}

// KVGet returns what [KVSet] kept under a key, and whether there is anything. It
// needs [CapStateKV].
func KVGet(key string) (string, bool) {
	n := hostKVGet(key, free, room)
	for ; n > room; n = hostKVGet(key, free, room) {
		refill(n)
	}
	missing("KVGet", key, n)
	return cut(n), n >= 0
}

// KVSet keeps a value for later calls, also of a later build of the plugin; over a restart of
// the proxy only if its key is [Registration.Durable]. It counts only if the handler does not fail.
// It needs [CapStateKV].
func KVSet(key, value string) error { return check("KVSet", key, hostKVSet(key, value)) }

// KVDelete drops what is kept under a key, if there is anything. It needs [CapStateKV].
func KVDelete(key string) error { return check("KVDelete", key, hostKVDel(key)) }

// Abort ends the guest at once with a message, for a state that cannot be. The
// hook fails, and the proxy starts the next call with a fresh guest.
func Abort(reason string) {
	hostAbort(reason)
	panic(reason) // the host does not return
}
