#!/bin/sh
# Generates api.pb.go and api_grpc.pb.go from api.proto. It needs protoc (Debian:
# protobuf-compiler); protoc-gen-go is of the version in go.mod, so that the code and
# its runtime match, protoc-gen-go-grpc of the version below.
set -eu
cd "$(dirname "$0")"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install google.golang.org/protobuf/cmd/protoc-gen-go
GOBIN=$bin go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.6.2
module=$(go list -m)
root=$(go list -m -f '{{.Dir}}')
cd "$root"
PATH=$bin:$PATH protoc --go_out=. --go_opt=module="$module" \
	--go-grpc_out=. --go-grpc_opt=module="$module" \
	runtime/remote/runtimehook/api.proto
