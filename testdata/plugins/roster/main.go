// Command roster is a plugin that writes down each pod that it hears of, at each
// event: a log line "uid/attempt", of a pod that was there before the plugin with
// the states of its containers after it.
package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

func main() {} // never runs

func init() {
	wp.Plugin("roster", "1.0.0").Needs(wp.CapStoreRead).
		OnSynchronize(synchronize).
		OnPreRunPodSandbox(pod[wp.PreRunPodSandbox]).
		OnPostRunPodSandbox(pod[wp.PostRunPodSandbox]).
		OnPreCreateContainer(container[wp.PreCreateContainer]).
		OnPostCreateContainer(container[wp.PostCreateContainer]).
		OnPreStartContainer(container[wp.PreStartContainer]).
		OnPostStartContainer(container[wp.PostStartContainer]).
		OnPreExecSync(container[wp.PreExecSync]).
		OnPostExecSync(container[wp.PostExecSync]).
		OnPreStopContainer(container[wp.PreStopContainer]).
		OnPostStopContainer(container[wp.PostStopContainer]).
		OnPreRemoveContainer(container[wp.PreRemoveContainer]).
		OnPostRemoveContainer(container[wp.PostRemoveContainer]).
		OnPreStopPodSandbox(pod[wp.PreStopPodSandbox]).
		OnPostStopPodSandbox(pod[wp.PostStopPodSandbox]).
		OnPreRemovePodSandbox(pod[wp.PreRemovePodSandbox]).
		OnPostRemovePodSandbox(pod[wp.PostRemovePodSandbox])
}

func synchronize(p *wp.Synchronize) error {
	line := name(p)
	for _, c := range p.Containers() {
		line += " " + c.Name() + ":" + c.State()
	}
	wp.Log(wp.LevelInfo, line)
	return nil
}

// named is a pod, and each event of pods.
type named interface {
	UID() string
	Attempt() int64
}

func pod[E any, P interface {
	*E
	named
}](p P) error {
	return note(p)
}

func container[E any, C interface {
	*E
	Pod() wp.Pod
}](c C) error {
	return note(c.Pod())
}

func note(p named) error {
	wp.Log(wp.LevelInfo, name(p))
	return nil
}

// name tells the sandboxes of a node apart: one that is being made has no id yet.
func name(p named) string { return p.UID() + "/" + wp.FormatInt(p.Attempt()) }
