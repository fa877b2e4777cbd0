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
# CRI's own file, by the name that its descriptor has, without an option that protoc 3.21 does not know.
cri=staging/src/k8s.io/cri-api/pkg/apis/runtime/v1
mkdir -p "$bin/$cri"
sed 's/debug_redact = true/deprecated = false/' "$(go list -m -f '{{.Dir}}' k8s.io/cri-api)/${cri#*cri-api/}/api.proto" >"$bin/$cri/api.proto"
PATH=$bin:$PATH protoc -I. -I"$bin" --go_out=. --go_opt=module="$module" runtime/remote/runtimehook/api.proto
