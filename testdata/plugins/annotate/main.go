// Command annotate is a plugin that adds an annotation wherever one may be
// added, so that every such request is decoded, changed and encoded again.
package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

func main() {} // never runs

func init() {
	wp.Plugin("annotate", "1.0.0").Needs(wp.CapAnnotations).
		OnPreRunPodSandbox(func(p *wp.PreRunPodSandbox) error { return annotate(p) }).
		OnPreCreateContainer(func(c *wp.PreCreateContainer) error { return annotate(c) }).
		OnPreUpdateContainerResources(func(c *wp.PreUpdateContainerResources) error { return annotate(c) })
}

func annotate(event interface{ SetAnnotation(key, value string) error }) error {
	return event.SetAnnotation("annotate.wasmproxy.io/seen", "true")
}
