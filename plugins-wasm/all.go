package plugins

// Plugin is one of the plugins that ship with the proxy.
type Plugin struct {
	Name   string // of its folder
	Module []byte // not to be changed
}

// All returns the plugins that ship with the proxy, sorted by name.
func All() []Plugin {
	return []Plugin{
		{"audit", Audit},
		{"cpu-burst", CPUBurst},
		{"cpu-normalization", CPUNormalization},
		{"default-annotations", DefaultAnnotations},
		{"exec-guard", ExecGuard},
		{"image-policy", ImagePolicy},
		{"koordlet", Koordlet},
		{"memory-qos", MemoryQoS},
		{"qos", QoS},
	}
}
