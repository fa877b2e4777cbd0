package abi

// This file has what hosts and tools need of the ABI and guests do not. The SDK that is
// copied beside a new plugin is without it.

// MaxModule is the largest module that a host takes, in bytes. One of standard Go with
// encoding/json has 3.3 MiB.
const MaxModule = 8 << 20

// OfQOSClass returns the pod whose QoS class o is, and false if o is none.
func (o Object) OfQOSClass() (pod Object, ok bool) { return o - QOSClass, o >= QOSClass }

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

// Shape says what an argument means to languages that have more than numbers.
type Shape string

// The shapes of arguments.
const (
	Plain  Shape = "plain"  // a number
	Text   Shape = "text"   // a pointer and a length, which the host reads
	Buffer Shape = "buffer" // a pointer and a length, which the host writes
	Number Shape = "number" // a pointer to 8 bytes, which the host writes
)

// Argument is a parameter of a host function, or a pair of them.
type Argument struct {
	Param
	At     int // its place among the parameters
	Shape  Shape
	Length string // the name of the length, which is the parameter after it
}

// Arguments joins pointers and lengths: x with x_len, buf with cap or len.
func (f *Function) Arguments() (list []Argument) {
	for i := 0; i < len(f.Params); i++ {
		a := Argument{Param: f.Params[i], At: i, Shape: Plain}
		next := ""
		if i+1 < len(f.Params) {
			next = f.Params[i+1].Name
		}
		switch {
		case a.Name == "buf":
			a.Shape, a.Length = Buffer, next
			i++
		case next == a.Name+"_len":
			a.Shape, a.Length = Text, next
			i++
		case a.Name == "out":
			a.Shape = Number
		}
		list = append(list, a)
	}
	return list
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

	// Files of many pods and containers at once. It returns a length.
	{"cgroup_read", i32s("objects", "objects_len", "files", "files_len", "buf", "cap"), I32, CgroupRead},

	// Taking back, and with whom a change conflicts. withdraw returns 0, and conflict a length.
	{"withdraw", i32s("object", "field", "key", "key_len"), I32, 0},
	{"conflict", i32s("buf", "cap"), I32, 0},
}

// Export is what a guest exports.
type Export struct {
	Name     string
	Params   []ValueType
	Result   ValueType // 0 if there is none
	Required bool
}

// Exports is the table of a guest's functions. The memory beside them is required.
var Exports = []Export{
	{ExportInitialize, nil, 0, false},
	{ExportABI, nil, I32, true},
	{ExportManifest, nil, I64, false},
	{ExportConfigure, nil, I32, false},
	{ExportHook, []ValueType{I32}, I32, true},
}

// Addition is a row of a table that a minor version after 1.0 has added.
type Addition struct {
	Minor int
	Table string // "hook", "function", "field", "capability", "error" or "feature"
	Name  string // as the table has it; of a field with its object, such as "container.env"
}

// Additions are those rows, in the order of versions. All others are of 1.0. What the tables had then is in testdata.
var Additions = []Addition{}

// Since returns the minor version that has added a row of a table.
func Since(table, name string) (minor int) {
	for _, a := range Additions {
		if a.Table == table && a.Name == name {
			return a.Minor
		}
	}
	return 0
}

// Needs returns the minor version that a guest needs which imports these functions and wants these hooks, whatever the SDK that
// it was built with. The rest of what it uses is answered with an error by a host that does not have it.
func Needs(functions, hooks []string) (minor int) {
	for _, name := range functions {
		minor = max(minor, Since("function", name))
	}
	for _, name := range hooks {
		minor = max(minor, Since("hook", name))
	}
	return minor
}

// FeatureInfo is a row of the table of features.
type FeatureInfo struct {
	Feature Feature
	Name    string
}

// Features is the table of features.
var Features = []FeatureInfo{
	{FeatureCgroupV2, "cgroup_v2"},
	{FeatureCgroupFiles, "cgroup_files"},
	{FeatureUpdate, "update"},
	{FeatureKV, "kv"},
}

// ManifestHooks lists the hooks of a set in the order of the table, for all pods.
func ManifestHooks(s HookSet) []ManifestHook {
	var list []ManifestHook
	for _, name := range s.Names() {
		list = append(list, ManifestHook{Hook: name})
	}
	return list
}

// HookSet returns the hooks that the manifest names, as far as this version has them.
func (m *Manifest) HookSet() HookSet {
	var s HookSet
	for _, wanted := range m.Hooks {
		if h, ok := HookByName(wanted.Hook); ok {
			s |= 1 << h
		}
	}
	return s
}

// Names lists the set in the order of the table.
func (s HookSet) Names() []string {
	var names []string
	for _, info := range Hooks {
		if s.Has(info.Hook) {
			names = append(names, info.Name)
		}
	}
	return names
}

// CapabilitySetOf returns the set of exactly these capabilities.
func CapabilitySetOf(capabilities ...Capability) CapabilitySet {
	var s CapabilitySet
	for _, c := range capabilities {
		s |= 1 << c
	}
	return s
}

// Names lists the set in the order of the table.
func (s CapabilitySet) Names() []string {
	var names []string
	for _, info := range Capabilities {
		if s.Has(info.Capability) {
			names = append(names, info.Name)
		}
	}
	return names
}

// String returns "before", "before, cannot refuse", "after" or "standalone".
func (p Phase) String() string {
	return [...]string{"", "before", "before, cannot refuse", "after", "standalone"}[p]
}

// String returns "i64", "string", "map", "list" or "set".
func (t Type) String() string {
	return [...]string{"", "i64", "string", "map", "list", "set"}[t]
}

// String returns the capability's name, or "" for a number that is none.
func (c Capability) String() string {
	if c == 0 || int(c) > len(Capabilities) {
		return ""
	}
	return Capabilities[c-1].Name
}
