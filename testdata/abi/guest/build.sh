#!/usr/bin/env bash
# build.sh wat|go|tinygo|rust|c OUT.wasm [SOURCE]: builds the program of README.md, which is
# in this folder in each of the languages, or another one in Rust or C. Go's is also TinyGo's.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
toolchain=$here/../../toolchain
out=$(realpath "$2")
source=${3-}
case $1 in
wat)
	. "$toolchain/packages.sh"
	install_packages wabt
	wat2wasm "$here/wat/guest.wat" -o "$out"
	;;
go)
	cd "$here/go"
	GOOS=wasip1 GOARCH=wasm go build -trimpath -buildvcs=false -buildmode=c-shared -ldflags='-s -w' -o "$out" .
	;;
tinygo)
	"$toolchain/plugin.sh" "$here/go" "$out"
	;;
rust)
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	rustc=$(dirname "$("$toolchain/rust.sh")")/rustc
	flags=(--edition 2024 --target wasm32-unknown-unknown -C opt-level=z -C codegen-units=1 -C panic=abort -C strip=symbols)
	CARGO_PKG_VERSION=0 "$rustc" "${flags[@]}" --remap-path-prefix "$here/=/" --crate-name wasmproxy --crate-type rlib -o "$work/libwasmproxy.rlib" "$here/../../../sdk/rust/src/lib.rs"
	"$rustc" "${flags[@]}" --remap-path-prefix "$here/=/" --crate-name guest --crate-type cdylib -C lto=fat -C link-arg=-zstack-size=65536 \
		--extern "wasmproxy=$work/libwasmproxy.rlib" -o "$work/guest.wasm" "${source:-$here/rust/lib.rs}"
	install -m 644 "$work/guest.wasm" "$out"
	;;
c)
	"$("$toolchain/clang.sh")" --target=wasm32 -mbulk-memory -Wall -Wextra -Werror -Oz -nostdlib -ffreestanding -I"$here/../../../sdk/c" \
		-Wl,--no-entry -Wl,--strip-all -Wl,-zstack-size=65536 -o "$out" "${source:-$here/c/guest.c}"
	;;
*)
	echo "build.sh: no language $1" >&2
	exit 2
	;;
esac
