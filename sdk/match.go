package sdk

// Match narrows a hook to some pods and containers. The proxy evaluates it: what
// does not match does not wake the plugin. Every list that is given must match.
//
//	wp.Match{Namespaces: []string{"prod-*", "!prod-test"}, Labels: []string{"tier=gold"}}
type Match struct {
	// Lists of globs, of which one must match: * stands for any run of characters,
	// ? for one. One that begins with "!" rules out what the rest of it matches.
	Namespaces      []string
	QoS             []string
	RuntimeHandlers []string
	Containers      []string // names; looked at in hooks of containers only

	// Lists of what the pod must have, all of it: "key=value", "key" for any value,
	// "key=!value" for any but that one, "key=!*" for none.
	Labels      []string
	Annotations []string
}

// match writes a match as abi.Match has it in JSON.
func (w *writer) match(m Match) {
	w.raw("{")
	w.list("namespaces", m.Namespaces)
	w.list("qos", m.QoS)
	w.list("runtime_handlers", m.RuntimeHandlers)
	w.list("containers", m.Containers)
	w.pairs("labels", m.Labels)
	w.pairs("annotations", m.Annotations)
	w.raw("}")
}

// pairs writes "key=value" as members of an object. A key of Kubernetes has no "=".
func (w *writer) pairs(key string, pairs []string) {
	if len(pairs) == 0 {
		return
	}
	w.key(key)
	w.raw("{")
	for _, pair := range pairs {
		at := 0
		for at < len(pair) && pair[at] != '=' {
			at++
		}
		w.key(pair[:at])
		w.quote(pair[min(at+1, len(pair)):])
	}
	w.raw("}")
}
