#!/usr/bin/env bash
# plugins.sh: rebuilds every plugin of plugins-wasm in place.
# plugins.sh --check: rebuilds them elsewhere and compares, byte for byte.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../../plugins-wasm"

# compile NAME OUT.wasm: with the compiler that its source is for.
compile() {
	if [ -e "$1/Cargo.toml" ]; then
		"$here/rust-plugin.sh" "$1" "$2"
	else
		"$here/plugin.sh" "$1" "$2"
		go run "$here/manifest" "$2"
	fi
}

build() { compile "$1" "$1/$1.wasm"; }

check() {
	compile "$1" "$scratch/$1.wasm"
	cmp "$scratch/$1.wasm" "$1/$1.wasm" || {
		echo "plugins.sh: $1.wasm is not what its source builds; run: make plugins" >&2
		return 1
	}
}

each=build
if [ "${1-}" = --check ]; then
	each=check
	scratch=$(mktemp -d)
	trap 'rm -rf "$scratch"' EXIT
fi
for source in */main.go */Cargo.toml; do
	name=${source%/*}
	$each "$name"
	echo "plugins-wasm/$name/$name.wasm: $(wc -c < "$name/$name.wasm") bytes, $each done"
done
