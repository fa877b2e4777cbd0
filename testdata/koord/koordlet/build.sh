#!/usr/bin/env bash
# build.sh CACHE: builds koordlet's hook server, once, and prints its path.
#
# It is built of Koordinator's module but for the performance counters, which
# link a C library and which no hook uses. In their place are those that
# Koordinator has for systems other than Linux.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
key=$(cat go.mod go.sum main.go build.sh | sha256sum | cut -c 1-12)
program=$(realpath -m "$1")/koordlet-$key/koordlet
if [ ! -x "$program" ]; then
	echo "building koordlet (once; some minutes)" >&2
	source=$(mktemp -d)
	trap 'rm -rf "$source"' EXIT
	export GOFLAGS= CGO_ENABLED=0
	go mod download github.com/koordinator-sh/koordinator
	cp -r "$(go list -m -f '{{.Dir}}' github.com/koordinator-sh/koordinator)"/{apis,pkg,go.mod} "$source"
	chmod -R u+w "$source"
	counters=$source/pkg/koordlet/util/perf_group
	rm "$counters"/perf_group_linux*.go
	sed -i '/^\/\/ *[+go:]*build !linux$/d' "$counters/perf_group_unsupported.go"
	cp go.mod "$source/koordlet.mod"
	cp go.sum "$source/koordlet.sum"
	go mod edit -replace="github.com/koordinator-sh/koordinator=$source" "$source/koordlet.mod"
	nice go build -mod=mod -modfile="$source/koordlet.mod" -trimpath -buildvcs=false -o "$program.unfinished" .
	mv "$program.unfinished" "$program"
fi
echo "$program"
