// Command image-policy is a plugin that refuses containers whose images are not from allowed
// registries, or are not named by a digest. README.md is its manual.
package main

import wp "github.com/wasmproxy/wasmproxy/sdk"

func main() {} // never runs: the proxy calls the handlers

func init() {
	wp.Plugin("image-policy", "1.0.0").
		Describe("refuses images that are not from allowed registries, or are not named by a digest").
		License("Apache-2.0").
		ConfigSchema(schema).
		OnConfigure(configure).
		OnPrePullImage(pull).
		OnPreCreateContainer(create)
}

// pull spares a download that create would refuse. Nothing runs by a pull, so what cannot be told yet passes.
func pull(e *wp.PrePullImage) error {
	namespace := e.Pod().Namespace()
	if namespace == "" { // nobody's pod: crictl pull
		return nil
	}
	rule := ruleOf(namespace)
	if reason := rule.refusal(known{name: e.Image(), pulled: true}); reason != "" {
		return e.Reject(wp.PermissionDenied, reason)
	}
	return nil
}

func create(c *wp.PreCreateContainer) error {
	rule := ruleOf(c.Pod().Namespace())
	reason := rule.refusal(known{name: c.Image(), id: c.ImageID(), digests: c.ImageRepoDigests})
	if reason != "" {
		return c.Reject(wp.PermissionDenied, reason)
	}
	for path, name := range c.ImageVolumes() {
		if reason == "" {
			if reason = rule.refusal(known{name: name}); reason != "" {
				reason = "volume at " + path + ": " + reason
			}
		}
	}
	if reason != "" {
		return c.Reject(wp.PermissionDenied, reason)
	}
	return nil
}
