package daemon

import (
	"context"
	"time"

	"github.com/wasmproxy/wasmproxy/runtime/nodefeatures"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/status"
)

// writeNodeFeatures looks again and again whether node-features-file is right, until ctx is done. The file stays then: a
// restart of the proxy must not take labels from the node.
func writeNodeFeatures(
	ctx context.Context, path string, every time.Duration, now func(context.Context) (*status.Status, error), observer observe.Observer,
) {
	if path == "" {
		return
	}
	file, failed := nodefeatures.NewWriter(path), false
	period := time.NewTicker(every)
	defer period.Stop()
	for {
		s, err := now(ctx)
		if err == nil {
			err = file.Write(s)
		}
		if err != nil && !failed && ctx.Err() == nil {
			observer.Observe(ctx, &observe.NodeFeaturesFailed{File: path, Err: err})
		}
		failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-period.C:
		}
	}
}
