package host

import (
	"cmp"
	"fmt"
)

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

// KubeletFiles is what kubelet's files say.
type KubeletFiles struct{ k *kubelet }

// KubeletFiles reads the files that kubelet is started with.
func (h *Host) KubeletFiles() (*KubeletFiles, error) {
	k, err := h.readKubelet()
	if err != nil {
		return nil, err
	}
	byDefault := !k.named && k.config != ""
	if byDefault && k.manager == nil && k.home() == (text{}) {
		return nil, fmt.Errorf("%w: there is no %s, and no flag names it", errNoEndpoint, k.config)
	}
	return &KubeletFiles{k}, nil
}

// Default returns the endpoint that kubelet has where no file names one.
func (f *KubeletFiles) Default() Setting {
	if m := f.k.manager; m != nil && m.endpoint != "" {
		return Setting{File: m.unitNames(), Name: "the endpoint that it gives kubelet", Value: m.endpoint, Used: true}
	}
	return Setting{File: cmp.Or(f.k.config, kubeletUnit), Name: runtimeKey.field, Value: DefaultEndpoint, Used: true}
}

// Settings returns the values of a setting by the names of its flag and its key, in the order in which kubelet takes
// them. Where a program writes kubelet's files, it is the one alone that counts: the others are not the operator's.
func (f *KubeletFiles) Settings(names [2]string) (all []Setting) {
	of := key{flag: names[0], field: names[1]}
	last := f.k.lastWith(of)
	for _, t := range f.k.texts {
		value, _ := t.has(of)
		if !t.yaml || value == "" {
			continue
		}
		counts := last == nil || *last == t || last.values(of) != nil // an empty value over it is kubelet's default
		all = append(all, Setting{File: t.path, Name: of.field, Value: value, Used: counts && t.path != instanceConfig})
	}
	for _, flag := range flagsIn(f.k.args) {
		if flag.name == of.flag {
			all = append(all, Setting{File: flag.file, Name: "--" + of.flag, Value: flag.value.String(), Used: true})
		}
	}
	if f.k.manager != nil && len(all) > 1 {
		all = all[len(all)-1:]
	}
	return all
}
