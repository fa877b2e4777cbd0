#!/usr/bin/env bash
# build.sh CACHE PROGRAM: builds a program of koordlet's parts, once, and prints its path. The program is
# koordlet, its hook server in this folder, or burst.
#
# They are built of Koordinator's module but for the performance counters, which
# link a C library and which neither uses. In their place are those that
# Koordinator has for systems other than Linux.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
key=$(cat go.mod go.sum main.go burst/*.go build.sh | sha256sum | cut -c 1-12)
programs=$(realpath -m "$1")/koordlet-$key
if [ ! -x "$programs/$2" ]; then
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
	sed '/^\/\/go:build ignore$/d' burst/internal.go > "$source/pkg/koordlet/qosmanager/plugins/cpuburst/internal.go"
	cp go.mod "$source/koordlet.mod"
	cp go.sum "$source/koordlet.sum"
	go mod edit -replace="github.com/koordinator-sh/koordinator=$source" "$source/koordlet.mod"
	build="nice go build -mod=mod -modfile=$source/koordlet.mod -trimpath -buildvcs=false -o"
	$build "$programs/burst.unfinished" ./burst
	$build "$programs/koordlet.unfinished" .
	for program in burst koordlet; do
		mv "$programs/$program.unfinished" "$programs/$program"
	done
fi
echo "$programs/$2"
