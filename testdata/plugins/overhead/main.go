// Command overhead is a plugin for one runtime handler, sandboxed: it annotates a
// pod of it and its containers with the handler and with what the pod's sandbox
// costs by its RuntimeClass.
package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

func main() {} // never runs

func init() {
	sandboxed := wp.Match{RuntimeHandlers: []string{"sandboxed"}}
	wp.Plugin("overhead", "1.0.0").Needs(wp.CapAnnotations).
		OnPreRunPodSandbox(func(p *wp.PreRunPodSandbox) error { return annotate(p, p.Pod) }, sandboxed).
		OnPreCreateContainer(func(c *wp.PreCreateContainer) error { return annotate(c, c.Pod()) }, sandboxed)
}

func annotate(event interface{ SetAnnotation(key, value string) error }, p wp.Pod) error {
	o := p.Overhead()
	return event.SetAnnotation("overhead.wasmproxy.io/of", p.RuntimeHandler()+
		": quota "+wp.FormatInt(o.CPUQuota())+", shares "+wp.FormatInt(o.CPUShares())+", memory "+wp.FormatInt(o.MemoryLimit()))
}
