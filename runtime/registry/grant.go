package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
)

// allowance is what an operator lets a module do and keep.
type allowance struct {
	grant  abi.CapabilitySet
	limits abi.Limits
	state  string
}

// allowanceKeys are for modules. A hook server is a process of its own, which
// nobody here can deny or limit.
var allowanceKeys = []key{
	{"grant", readGrant},
	{"limits", readLimits},
	{"state", readState},
}

func readGrant(s *settings, v json.RawMessage) error {
	names, err := decode[[]string](v, "a list of capabilities")
	if err != nil {
		return err
	}
	granted, wrong := abi.CapabilitiesNamed(names)
	if slices.Contains(names, "*") { // an operator names what a plugin gets
		wrong = []string{"*"}
	}
	if len(wrong) > 0 {
		return unknown("capability", wrong[0], abi.AllCapabilities.Names())
	}
	s.grant = granted
	return nil
}

func readState(s *settings, v json.RawMessage) error {
	text, err := decode[string](v, "a string")
	if err != nil || text == "" {
		return err
	}
	if text != abi.StateNone && text != abi.StateInstance {
		return fmt.Errorf("%.64q is neither %q nor %q", text, abi.StateNone, abi.StateInstance)
	}
	s.state = text
	return nil
}

func readDryRun(s *settings, v json.RawMessage) (err error) {
	s.dryRun, err = decode[bool](v, "true or false")
	return err
}

// check refuses an allowance for a hook server.
func (a allowance) check() error {
	switch {
	case a.grant != 0:
		return errors.New("grant: is for modules, and this is a hook server")
	case a.limits != abi.Limits{}:
		return errors.New("limits: is for modules, and this is a hook server")
	case a.state != "":
		return errors.New("state: is for modules, and this is a hook server")
	}
	return nil
}

// takeAllowance copies what the operator allows. A plugin that changes nothing
// holds up nothing either.
func (d *Description) takeAllowance(s settings) {
	d.Grant, d.Limits, d.State, d.DryRun = s.grant, s.limits, s.state, s.dryRun
	if d.DryRun {
		d.Policy = plugin.Ignore
	}
}
