module github.com/wasmproxy/wasmproxy/runtime/remote/testdata/koordinator

go 1.26.0

require (
	github.com/koordinator-sh/koordinator v1.8.0
	google.golang.org/grpc v1.79.1
	google.golang.org/protobuf v1.36.11
	k8s.io/cri-api v0.35.2
)

require (
	github.com/go-logr/logr v1.4.3 // indirect
	github.com/golang/protobuf v1.5.4 // indirect
	golang.org/x/net v0.51.0 // indirect
	golang.org/x/sys v0.41.0 // indirect
	golang.org/x/text v0.34.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260209200024-4cfbd4190f57 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
)
