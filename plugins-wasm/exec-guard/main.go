// Command exec-guard is a plugin that keeps people out of the pods that a label marks:
// it refuses exec, attach and port forwarding. README.md is its manual.
package main

import (
	wp "github.com/wasmproxy/wasmproxy/sdk"
	"github.com/wasmproxy/wasmproxy/sdk/json"
)

// What the configuration says.
var (
	label, value string // value is "*" for any
	reason       string
	execSync     bool
)

func main() {} // never runs: the proxy calls the handlers

func init() {
	wp.Plugin("exec-guard", "1.0.0").
		Describe("refuses exec, attach and port forwarding into pods that a label marks").
		License("Apache-2.0").
		ConfigSchema(schema).
		OnConfigure(configure).
		OnPreExec(func(e *wp.PreExec) error { return guard(e.Pod(), e) }).
		OnPreExecSync(func(e *wp.PreExecSync) error {
			if !execSync {
				return nil
			}
			return guard(e.Pod(), e)
		}).
		OnPreAttach(func(e *wp.PreAttach) error { return guard(e.Pod(), e) }).
		OnPrePortForward(func(e *wp.PrePortForward) error { return guard(e.Pod, e) })
}

const schema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"label":{"type":"string","pattern":"^[^=]+(=[^=]*)?$"},` +
	`"reason":{"type":"string","minLength":1},` +
	`"execSync":{"type":"boolean"}}}`

func configure(config string) error {
	settings := json.Parse(config)
	label, value = cut(settings.Text("label", "exec-guard.wasmproxy.io/deny=true"))
	reason = settings.Text("reason", "this pod lets nobody in")
	execSync = settings.Bool("execSync", false)
	return settings.Err()
}

// cut returns a label's key and the value that it must have, "*" for any.
func cut(text string) (key, value string) {
	for i := range len(text) {
		if text[i] == '=' {
			return text[:i], text[i+1:]
		}
	}
	return text, "*"
}

// rejecter is an event whose call can be refused.
type rejecter interface {
	Reject(wp.RejectCode, string) error
}

func guard(p wp.Pod, e rejecter) error {
	if v, ok := p.Label(label); ok && (value == "*" || v == value) {
		return e.Reject(wp.PermissionDenied, reason)
	}
	return nil
}
