module github.com/wasmproxy/wasmproxy/testdata/nri-host

go 1.26.0

require (
	github.com/containerd/nri v0.12.5
	github.com/tetratelabs/wazero v1.12.0
	github.com/wasmproxy/wasmproxy v0.0.0
)

require (
	github.com/containerd/log v0.1.0 // indirect
	github.com/containerd/ttrpc v1.2.7 // indirect
	github.com/knqyf263/go-plugin v0.9.0 // indirect
	github.com/opencontainers/runtime-spec v1.3.0 // indirect
	github.com/sirupsen/logrus v1.9.4 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260819154853-08b0e4226688 // indirect
	google.golang.org/grpc v1.85.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/wasmproxy/wasmproxy => ../..
