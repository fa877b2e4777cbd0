// What is wrong with koord-runtime-proxy, each fault as a test of both proxies. A module of its
// own, so that nobody who imports wasmproxy requires Koordinator.
module github.com/wasmproxy/wasmproxy/testdata/koord

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/koordinator-sh/koordinator v1.8.0
	github.com/wasmproxy/wasmproxy/testdata/bench v0.0.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
	k8s.io/cri-api v0.37.2
)

require (
	github.com/golang/protobuf v1.5.4 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
)

replace github.com/wasmproxy/wasmproxy/testdata/bench => ../bench
