#!/usr/bin/env bash
# build.sh go|tinygo|rust DIRECTORY OUT.wasm: builds one guest as its authors would:
# with standard Go, or with TinyGo or Rust as the plugins that ship are built.
set -euo pipefail
toolchain=$(cd "$(dirname "${BASH_SOURCE[0]}")/../toolchain" && pwd)
language=$1
out=$(realpath "$3")
cd "$2"
case $language in
go)
	GOOS=wasip1 GOARCH=wasm go build -trimpath -buildvcs=false -buildmode=c-shared -ldflags='-s -w' -o "$out" .
	;;
tinygo)
	"$toolchain/plugin.sh" . "$out"
	;;
rust)
	"$toolchain/rust-plugin.sh" . "$out"
	;;
*)
	echo "build.sh: no language $language" >&2
	exit 2
	;;
esac
