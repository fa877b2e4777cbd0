package daemon

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/nodefeatures"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
)

// writeNodeFeatures looks again and again whether node-features-file is right, until ctx is done. The file stays then: a
// restart of the proxy must not take labels from the node.
func (d *daemon) writeNodeFeatures(ctx context.Context) {
	path := d.config.NodeFeatures
	if path == "" {
		return
	}
	file, failed := nodefeatures.NewWriter(path), false
	period := time.NewTicker(d.adminRetry)
	defer period.Stop()
	for {
		s, err := d.status(ctx)
		if err == nil {
			err = file.Write(s)
		}
		if err != nil && !failed && ctx.Err() == nil {
			d.observer.Observe(ctx, &observe.NodeFeaturesFailed{File: path, Err: err})
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-period.C:
		}
	}
}
