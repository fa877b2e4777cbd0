#!/bin/sh
# Generates api.pb.go from api.proto. It needs protoc (Debian: protobuf-compiler);
# protoc-gen-go is of the version in go.mod, so that the code and its runtime match.
set -eu
cd "$(dirname "$0")"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install google.golang.org/protobuf/cmd/protoc-gen-go
module=$(go list -m)
root=$(go list -m -f '{{.Dir}}')
cd "$root"
PATH=$bin:$PATH protoc --go_out=. --go_opt=module="$module" runtime/remote/runtimehook/api.proto
