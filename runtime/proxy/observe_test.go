package proxy_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/observe"
	"github.com/wasmproxy/wasmproxy/runtime/proxy"
)

// Each call that has ended is one event, with its route and the time that the backend had.
func TestCallFinished(t *testing.T) {
	slow := func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
		call.Followed, call.Hooked, call.Plugins = true, true, 20*time.Millisecond
		time.Sleep(20 * time.Millisecond) // as hooks would
		return next(ctx, call.Request)
	}
	following := func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
		call.Followed = true
		return next(ctx, call.Request)
	}
	refusing := func(_ context.Context, call *cri.Call, _ cri.Next) (*cri.Frame, error) {
		call.Hooked = true
		return nil, status.Error(codes.PermissionDenied, "no")
	}
	for name, tt := range map[string]struct {
		method string
		change func(*proxy.Options)
		want   observe.CallFinished
	}{
		"passed":   {version, func(*proxy.Options) {}, observe.CallFinished{Method: version, Code: "OK", Route: observe.Passed}},
		"stream":   {chat, func(*proxy.Options) {}, observe.CallFinished{Method: chat, Code: "OK", Route: observe.Passed}},
		"hooked":   {version, route(version, slow), observe.CallFinished{Method: version, Code: "OK", Route: observe.Hooked}},
		"followed": {version, route(version, following), observe.CallFinished{Method: version, Code: "OK", Route: observe.Followed}},
		"refused":  {version, route(version, refusing), observe.CallFinished{Method: version, Code: "PermissionDenied", Route: observe.Hooked}},
		"panicked": {version, func(o *proxy.Options) { o.Router = panicOn(version) }, observe.CallFinished{Method: version, Code: "Internal", Route: observe.Passed}},
	} {
		t.Run(name, func(t *testing.T) {
			var events observe.Recorder
			conn := through(t, echo, func(o *proxy.Options) {
				o.Observer = &events
				tt.change(o)
			})
			_, _ = invoke(withTimeout(t, time.Minute), conn, tt.method, nil)
			e, err := events.Wait(withTimeout(t, time.Minute), func(e observe.Event) bool { _, ok := e.(*observe.CallFinished); return ok })
			if err != nil {
				t.Fatal(err)
			}
			got := e.(*observe.CallFinished)
			if got.Method != tt.want.Method || got.Code != tt.want.Code || got.Route != tt.want.Route {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if asked := name == "passed" || name == "stream" || name == "followed" || name == "hooked"; (got.Backend > 0) != asked || got.Backend > got.Duration || got.Start.IsZero() {
				t.Errorf("the times are %+v", got)
			}
			if hooks := got.Duration - got.Backend; (name == "hooked") != (got.Plugins == 20*time.Millisecond) || hooks < got.Plugins {
				t.Errorf("the hooks' 20 ms are wrong in %+v", got)
			}
		})
	}
}
