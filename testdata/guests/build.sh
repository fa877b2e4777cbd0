#!/usr/bin/env bash
# build.sh go|tinygo|rust DIRECTORY OUT.wasm: builds one guest as its authors would:
# with standard Go, with TinyGo as the plugins that ship are built, or with Rust.
# Rust's linker gives every guest a stack of 1 MiB if not told otherwise, of which
# hooks use some hundred bytes and which is searched for changes after each.
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
	cargo=$("$toolchain/rust.sh")
	"$(dirname "$cargo")/rustc" --edition 2024 --crate-name guest --crate-type cdylib --target wasm32-unknown-unknown \
		-C opt-level=s -C lto=fat -C codegen-units=1 -C panic=abort -C strip=debuginfo \
		-C link-arg=-zstack-size="${STACK:-32768}" -o "$out" lib.rs
	;;
*)
	echo "build.sh: no language $language" >&2
	exit 2
	;;
esac
