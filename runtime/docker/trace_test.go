package docker_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc/metadata"

	"github.com/wasmproxy/wasmproxy/runtime/cri"
	"github.com/wasmproxy/wasmproxy/runtime/docker"
)

// TestTraceOfARequest: the calls of a request are in the client's trace, and Docker's spans below the last
// of them. A request without hooks keeps its headers.
func TestTraceOfARequest(t *testing.T) {
	n := newNode(t, true)
	var incoming []string
	hooked := true
	s := docker.New(docker.Options{Client: n.client, Store: n.store, Observer: n, Router: func(string) cri.Interceptor {
		if !hooked {
			return nil
		}
		return func(ctx context.Context, call *cri.Call, next cri.Next) (*cri.Frame, error) {
			incoming = append(incoming, fmt.Sprint(metadata.ValueFromIncomingContext(ctx, "traceparent"), metadata.ValueFromIncomingContext(ctx, "tracestate")))
			return next(metadata.NewOutgoingContext(ctx, metadata.Pairs("traceparent", fmt.Sprint("span", len(incoming)))), call.Request)
		}
	}})
	send := func() http.Header {
		r := httptest.NewRequest("POST", "/v1.41/containers/create?name=web", strings.NewReader(`{}`))
		r.Header.Set("traceparent", "client")
		r.Header.Set("tracestate", "a=b")
		s.ServeHTTP(httptest.NewRecorder(), r)
		return n.engine.last(t, "POST /v1.41/containers/create").header
	}
	if h := send(); fmt.Sprint(incoming) != "[[client] [a=b] [client] [a=b]]" || h.Get("traceparent") != "span2" || h["Tracestate"] != nil {
		t.Errorf("the calls get %s, and Docker %v", incoming, h)
	}
	hooked = false
	if h := send(); h.Get("traceparent") != "client" || h.Get("tracestate") != "a=b" {
		t.Errorf("without hooks Docker gets %v", h)
	}
}
