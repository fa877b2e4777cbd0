package registry

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/regular"
)

// Description is what the operator says of one plugin: a wasm module, or a hook
// server if Endpoint is set. It is a value; nobody changes what it points to.
type Description struct {
	ID   string // base name of the file without its extension, safe to print (plugin.Name); unique in a list
	File string // the .wasm file, or the JSON file that names the endpoint or a module

	Module string // path of the module from the directory of File; empty if File is the module, or there is none

	Digest   string // of the module, SHA-256 in hex; empty for a hook server
	Settings string // SHA-256 in hex of the JSON file as it was read; empty without one
	Alone    string // Settings as they would be without the shadow; empty if there is none
	Text     string // of that file
	Copy     string // path of a copy of the module, which is read in place of the file, if it can be; empty if there is none
	Endpoint string // absolute path of the hook server's unix socket; empty for a module

	Policy       plugin.FailurePolicy
	Hooks        abi.HookSet // the hooks that the file names: they narrow a module's, and are all that a hook server gets
	HooksNamed   bool        // whether it names hooks at all
	UnknownHooks []string    // names of a hook server's file that are no hook here; they do no harm
	Timeout      time.Duration
	TickTimeout  time.Duration   // Timeout of a module's Tick; 0: nothing is said
	TickPeriod   time.Duration   // of a module; 0 leaves it to the module
	Match        abi.Match       // which pods and containers the plugin is asked about
	Order        string          // takes the place of ID in the order of the list; "" if it does not
	Config       json.RawMessage // for the module, compact JSON; nil if there is none

	Grant  abi.CapabilitySet  // what a module may do beyond abi.DefaultGrant
	Bounds plugin.GrantBounds // of Grant
	Limits abi.Limits         // what one call of a module may use; 0 where nothing is said. Its time is Timeout
	State  string             // the module's mode of state; "" leaves it to the module
	DryRun bool               // what it wants is logged, and nothing is changed

	Shadow *Description // another version, which is called beside it and changes nothing; nil if there is none
	Sample int          // of a shadow: the percent of pods for which it is called

	Disabled bool // its file switches it off

	// Interpret asks that the module be interpreted: slow, and out of reach of a
	// fault in the engine's compiler.
	Interpret bool

	// Problem says what is wrong with the plugin's files. Such a description describes nothing: it has
	// ID and File beside it, Module if that could be read, and Disabled if the last good files said so.
	Problem error
}

// Same reports whether two descriptions say the same of a plugin, wherever its module is read from.
func (d Description) Same(o Description) bool {
	o.Copy = d.Copy
	return reflect.DeepEqual(d, o)
}

// IsHookServer reports whether the file is one of a hook server, be it a bad one:
// it is JSON and names no module.
func (d Description) IsHookServer() bool { return d.Module == "" && filepath.Ext(d.File) != ".wasm" }

// JSONName is the name of the JSON file that describes the plugin, or can do so, safe to print.
func (d Description) JSONName() string {
	return plugin.Name(strings.TrimSuffix(filepath.Base(d.File), filepath.Ext(d.File)) + ".json")
}

// Granted is what a module may have of what it declares.
func (d Description) Granted() abi.CapabilitySet { return abi.DefaultGrant() | d.Grant }

// Rights are those of a module that has this manifest.
func (d Description) Rights(manifest abi.Manifest) plugin.Rights {
	r := plugin.RightsOf(manifest, d.Granted(), d.JSONName())
	r.Bounds = d.Bounds
	return r
}

// Source identifies what a plugin is made from. Descriptions with the same
// Source can share a loaded plugin, whatever else they say.
func (d Description) Source() string {
	if d.Endpoint != "" {
		return fmt.Sprintf("unix:%s %v %v", d.Endpoint, d.Hooks.Names(), d.Timeout)
	}
	return fmt.Sprintf("sha256:%s %x %v %v %v %v %x %v %s", d.Digest, sha256.Sum256(d.Config), d.Timeout, d.TickTimeout, d.TickPeriod,
		d.Interpret, uint64(d.Grant), d.Limits, d.State)
}

// Generation tells what the plugin's files say from what they said before and will say, in all that they say but
// of a shadow: it is another one after each such change of them, and the same after a restart of the proxy.
func (d Description) Generation() string {
	sum := sha256.Sum256([]byte(d.Digest + " " + cmp.Or(d.Alone, d.Settings)))
	return hex.EncodeToString(sum[:8])
}

// ReadModule returns the module that the description was made for. It fails if
// the file has another content by now: then another description is on its way.
func (d Description) ReadModule() ([]byte, error) {
	b, err := d.ReadAnyModule()
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != d.Digest {
		return nil, &fileError{d.modulePath(), errChanged}
	}
	return b, nil
}

// ReadAnyModule returns the module as it is now.
func (d Description) ReadAnyModule() ([]byte, error) {
	if d.Copy != "" {
		if b, err := regular.Read(d.Copy, maxModule, pluginFiles.check); err == nil { // else the file may have the same content
			return b, nil
		}
	}
	b, err := pluginFiles.readAll(d.modulePath(), maxModule)
	if err != nil {
		return nil, &fileError{d.modulePath(), err}
	}
	return b, nil
}

func (d Description) modulePath() string {
	if d.Module != "" {
		return filepath.Join(filepath.Dir(d.File), d.Module)
	}
	return d.File
}

var errChanged = errors.New("the file has changed since it was found")
