package plugin

import (
	"fmt"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Rights tell why a plugin lacks a capability, and what to do about it.
type Rights struct {
	Declared abi.CapabilitySet // those of its manifest
	// Grant is what the operator has to do for those that are declared and not granted,
	// such as: add  "grant": ["env"]  to 10-x.json. Empty where nobody knows.
	Grant string
}

// Grant says what an operator has to do for a plugin to have all of these beside the usual
// ones: file is the plugin's JSON.
func Grant(needs abi.CapabilitySet, file string) string {
	return fmt.Sprintf(`add  "grant": ["%s"]  to %s`, strings.Join(needs.Names(), `", "`), file)
}

// Explain sets by which rights the adjustment explains what the plugin lacks. Chains do this
// by themselves.
func (a *Adjustment) Explain(r Rights) { a.rights = r }

// Lacks says why the plugin has not all of what it needs; "" if it has.
func (a *Adjustment) Lacks(needs abi.CapabilitySet) string {
	missing := needs & abi.AllCapabilities &^ a.has // 0 is no capability
	if missing == 0 {
		return ""
	}
	var reasons []string
	if undeclared := missing &^ a.rights.Declared; undeclared != 0 {
		reasons = append(reasons, fmt.Sprintf("the plugin's manifest does not declare the capability %s", strings.Join(undeclared.Names(), ", ")))
	}
	if denied := missing & a.rights.Declared; denied != 0 {
		reason := fmt.Sprintf("the capability %s is declared but not granted", strings.Join(denied.Names(), ", "))
		if a.rights.Grant != "" {
			reason += ": " + a.rights.Grant
		}
		reasons = append(reasons, reason)
	}
	return strings.Join(reasons, "; ")
}
