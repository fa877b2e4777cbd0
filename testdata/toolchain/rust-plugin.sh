#!/usr/bin/env bash
# rust-plugin.sh PACKAGE-DIRECTORY OUT.wasm: builds one plugin with Rust and sdk/rust,
# always to the same bytes. cargo would do the same, but its names of symbols, and with
# them the order of functions, depend on the directory; so rustc is called as cargo calls
# it, with what the profile in the plugin's Cargo.toml says.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(realpath "$here/../..")
out=$(realpath "$2")
package=$(realpath --relative-to="$root" "$1")
rustc=$(dirname "$("$here/rust.sh")")/rustc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"

# field prints a key of the first section of a Cargo.toml.
field() { sed -n "s/^$2 = \"\(.*\)\"$/\1/p" "$1/Cargo.toml" | head -1; }

# compile DIRECTORY ARGUMENT...: compiles the crate in a directory.
compile() {
	local dir=$1 name
	shift
	name=$(field "$dir" name)
	CARGO_PKG_VERSION=$(field "$dir" version) "$rustc" \
		--crate-name "${name//-/_}" --edition "$(field "$dir" edition)" --target wasm32-unknown-unknown \
		-C opt-level=2 -C codegen-units=1 -C panic=abort -C strip=symbols \
		--remap-path-prefix "$root/=" --remap-path-prefix "$work/=" "$@" "$dir/src/lib.rs"
}

compile sdk/rust --crate-type rlib -o "$work/libwasmproxy.rlib"
compile "$package" --crate-type cdylib -C lto=fat -C link-arg=-zstack-size=65536 \
	--extern "wasmproxy=$work/libwasmproxy.rlib" -o "$work/plugin.wasm"
install -m 644 "$work/plugin.wasm" "$out"
