package abi

// Match narrows a hook to some pods and containers. The host evaluates it, so
// that an event which does not match wakes no guest. Every key that is given
// must match; the zero Match matches everything.
type Match struct {
	// Lists match if any of their globs does: * stands for any run of characters
	// but "/", ? for one, [a-z] for one of a class. One that begins with "!" rules
	// out what the rest of it matches; a list of such alone lets everything else in.
	Namespaces      []string `json:"namespaces,omitempty"`
	QoS             []string `json:"qos,omitempty"`
	RuntimeHandlers []string `json:"runtime_handlers,omitempty"`
	Containers      []string `json:"containers,omitempty"` // names; looked at in hooks of containers only

	// Maps match if the pod has each of their entries; the value "*" or ""
	// stands for any. "!" before it wants the opposite: "!*" is no entry of that
	// key, "!gold" none or one of another value.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}
