package host

// Setting is a value that one of kubelet's files has.
type Setting struct {
	File  string // as the host has it
	Name  string // the key of a configuration, or the flag
	Value string
	// Used says that kubelet reads it. Of several that are used, the last one counts. The
	// others are for the next `kubeadm upgrade`.
	Used bool
}

// Names of kubelet's settings that name endpoints: the flag and the key of each.
var (
	RuntimeEndpoint = [2]string{runtimeKey.flag, runtimeKey.field}
	ImageEndpoint   = [2]string{imageKey.flag, imageKey.field}
)

// KubeletSettings returns a function that finds the values of a setting by the names of its flag
// and its key, in the order in which kubelet takes them. It reads kubelet's files once.
func (h *Host) KubeletSettings() (find func(names [2]string) []Setting, err error) {
	k, err := h.readKubelet()
	if err != nil {
		return nil, err
	}
	return func(names [2]string) (all []Setting) {
		of := key{flag: names[0], field: names[1]}
		for _, t := range k.texts {
			name := "--" + of.flag
			if t.yaml {
				name = of.field
			}
			for _, value := range t.values(of) {
				all = append(all, Setting{File: t.path, Name: name, Value: value, Used: t.path != instanceConfig})
			}
		}
		return all
	}, nil
}
