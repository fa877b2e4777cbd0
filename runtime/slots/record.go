package slots

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/wasmproxy/wasmproxy/abi"
	"github.com/wasmproxy/wasmproxy/runtime/admin"
	"github.com/wasmproxy/wasmproxy/runtime/loader"
	"github.com/wasmproxy/wasmproxy/runtime/plugin"
	"github.com/wasmproxy/wasmproxy/runtime/recording"
	"github.com/wasmproxy/wasmproxy/runtime/registry"
)

// Recordings makes recordings of plugins.
type Recordings struct {
	Slots   *Slots
	Version string // of the program
}

// Record writes the calls of the active version of a plugin to out, until the recording ends or ctx is done. The error is
// an admin.NotReady, that of out, or that ctx is done before it begins.
func (r Recordings) Record(ctx context.Context, id string, o recording.Options, out io.Writer) error {
	type found struct {
		description registry.Description
		loaded      *loader.Loaded
	}
	p, err := ask(ctx, r.Slots, func() (f found, err error) {
		p, err := r.Slots.find(id)
		switch {
		case err != nil:
			return f, err
		case p.active == nil:
			return f, admin.NotReady(fmt.Sprintf("plugin %s is not active: wasmproxy plugin list shows why", id))
		}
		return found{p.active.description, p.active.loaded}, nil
	})
	if err != nil {
		return err
	}
	watched, ok := p.loaded.Plugin.(plugin.Watched)
	if !ok {
		return admin.NotReady(fmt.Sprintf("plugin %s is a hook server: only plugins that are WebAssembly modules can be recorded", id))
	}
	recorder := recording.NewRecorder(o)
	stop, ok := watched.Watch(recorder)
	if !ok {
		return admin.NotReady(fmt.Sprintf("plugin %s is being recorded already, or was replaced a moment ago: try again when the other recording has ended", id))
	}
	defer stop()
	of, manifest := p.description, p.loaded.Manifest()
	h := recording.Header{
		Plugin: of.ID, Name: manifest.Name, Release: manifest.Version, Digest: of.Digest, Config: of.Config, Grant: of.Granted().Names(),
		State: of.State, Limits: of.Limits, Hooks: manifest.Hooks, Proxy: r.Version, Time: time.Now().UTC(),
	}
	node := r.Slots.reconciler.Backend.Node.Load()
	h.Node = recording.Node{
		CgroupVersion: node.CgroupVersion, RuntimeName: node.RuntimeName, RuntimeVersion: node.RuntimeVersion, Kernel: node.Kernel,
	}
	h.Node.Host, _ = os.Hostname() // for people
	features := plugin.Features(r.Slots.reconciler.Cgroups.Version())
	for _, info := range abi.Features {
		if slices.Contains(features, info.Feature) {
			h.Features = append(h.Features, info.Name)
		}
	}
	return recorder.Write(ctx, out, h)
}
