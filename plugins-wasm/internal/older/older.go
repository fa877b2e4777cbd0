// Package older has what the plugins that ship with the proxy share in their hook Synchronize: how they
// give containers that are older than they are their values. It is not for hooks of a call, in which a
// failure is the operator's to judge.
package older

import wp "github.com/wasmproxy/wasmproxy/sdk"

// Containers calls set for each container of the pod that has not ended. A failure in Synchronize would keep
// the plugin from being loaded, so that what set returns is logged, and the next container comes.
// Without the grant update.others nothing is set, which the log says once for each pod.
func Containers(p *wp.Synchronize, set func(wp.FoundContainer) error) {
	for _, c := range p.Containers() {
		if c.State() == "exited" {
			continue
		}
		err := set(c)
		if err == nil {
			continue
		}
		wp.Log(wp.LevelWarn, "container "+c.Name()+", which is older than the plugin, does not get all of its values: "+err.Error())
		for reason := wp.ErrNotFound; reason >= wp.ErrConflict; reason-- {
			if wp.Handled(err, reason) && reason == wp.ErrDenied {
				return
			}
		}
	}
}

// Failure is why what an annotation of a pod asks for is not done.
type Failure struct {
	Annotation string
	Err        error
}

// Error names the annotation.
func (f *Failure) Error() string { return "annotation " + f.Annotation + ": " + f.Err.Error() }

// Unwrap returns the reason, which may be the host's.
func (f *Failure) Unwrap() error { return f.Err }
