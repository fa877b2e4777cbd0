package plugin

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/wasmproxy/wasmproxy/abi"
)

// Rights are what a plugin may do: what it declares and is granted.
type Rights struct {
	Declared abi.CapabilitySet // in its manifest
	Granted  abi.CapabilitySet // by the operator, and by default
	Bounds   GrantBounds       // of what is granted
	File     string            // the JSON in which the operator grants more; "" where nobody knows
}

// RightsOf returns the rights of a plugin with this manifest.
func RightsOf(m abi.Manifest, granted abi.CapabilitySet, file string) Rights {
	declared, _ := m.Declared()
	return Rights{Declared: declared, Granted: granted, File: file}
}

// Has returns the capabilities that the plugin has.
func (r Rights) Has() abi.CapabilitySet { return r.Declared & r.Granted }

// Lacks returns those that it declares and is not granted.
func (r Rights) Lacks() abi.CapabilitySet { return r.Declared &^ r.Granted }

// Line returns the line of the plugin's JSON that grants all that it lacks, beside what is
// granted there already.
func (r Rights) Line() string {
	var all []string
	for _, name := range (r.Lacks() | r.Granted&^abi.DefaultGrant()).Names() {
		var grant any = name
		for one, patterns := range r.Bounds {
			if one.String() == name {
				grant = map[string][]string{name: patterns}
			}
		}
		text, _ := json.Marshal(grant) // of texts: it cannot fail
		all = append(all, string(text))
	}
	return fmt.Sprintf(`"grant": [%s]`, strings.Join(all, ", "))
}

// Remedy says what the operator has to do for the plugin to have all that it declares; ""
// if nothing is lacking.
func (r Rights) Remedy() string {
	if r.Lacks() == 0 || r.File == "" {
		return ""
	}
	return fmt.Sprintf("add  %s  to %s", r.Line(), r.File)
}

// Lacks says why the plugin has not all of what it needs; "" if it has.
func (s *scope) Lacks(needs abi.CapabilitySet) string {
	missing := needs & abi.AllCapabilities &^ s.of.Capabilities // 0 is no capability
	if missing == 0 {
		return ""
	}
	var reasons []string
	if undeclared := missing &^ s.of.Rights.Declared; undeclared != 0 {
		reasons = append(reasons, fmt.Sprintf("the plugin's manifest does not declare the capability %s", strings.Join(undeclared.Names(), ", ")))
	}
	if denied := missing & s.of.Rights.Declared; denied != 0 {
		reason := fmt.Sprintf("the capability %s is declared but not granted", strings.Join(denied.Names(), ", "))
		if remedy := s.of.Rights.Remedy(); remedy != "" {
			reason += ": " + remedy
		}
		reasons = append(reasons, reason)
	}
	return strings.Join(reasons, "; ")
}
