#!/usr/bin/env bash
# tinygo.sh: sets up the TinyGo that builds the plugins of plugins-wasm, and
# prints the path of its command. With everything in place it only prints.
#
# TinyGo comes from its Go module, pinned by tinygo/go.mod; LLVM 19, the C
# library and wasm-opt come from Debian 12. Missing packages are installed, for
# which it must be root. The result is kept in .cache/tinygo at the top of the
# repository, or beneath WASMPROXY_CACHE.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/packages.sh"
cache=$(realpath -m "${WASMPROXY_CACHE:-$here/../../.cache}")
packages=(clang-19 lld-19 llvm-19-dev libclang-19-dev libclang-rt-19-dev-wasm32 wasi-libc binaryen g++)

# key names everything that the compiler is made of.
key() {
	cd "$here"
	{
		go env GOVERSION
		dpkg-query -W "${packages[@]}"
		cat tinygo.sh tinygo/go.mod tinygo/go.sum tinygo/espflasher/pkg/espflasher/*.go
	} | sha256sum | cut -c1-16
}

# build puts a TinyGo root at $1. The module's zip lacks the git submodules: an
# empty src/net makes TinyGo take Go's own net, and targets name Debian's C
# library and builtins: wp1.json, and wasip1, which `wasmproxy plugin build` takes.
build() {
	local root=$1 module
	cd "$here/tinygo"
	go mod download github.com/tinygo-org/tinygo
	module=$(go list -m -f '{{.Dir}}' github.com/tinygo-org/tinygo)
	mkdir -p "$root/bin" "$root/src/net"
	cp -r "$module/src/." "$root/src/"
	cp -r "$module/targets" "$root/"
	chmod -R u+w "$root"
	sed -i -e '/"libc":/d; /"rtlib":/d; /gc_boehm.c/d; s/\(asm_tinygowasm.S"\),/\1/' \
		-e 's|"--no-demangle"|&, "/usr/lib/wasm32-wasi/libc.a", "/usr/lib/llvm-19/lib/clang/19/lib/wasi/libclang_rt.builtins-wasm32.a"|' \
		"$root/targets/wasip1.json"
	CGO_ENABLED=1 go build -trimpath -tags llvm19 -o "$root/bin/tinygo" github.com/tinygo-org/tinygo
}

export GOWORK=off GOFLAGS=-buildvcs=false
install_packages "${packages[@]}"
root=$cache/tinygo/$(key)
if [ ! -x "$root/bin/tinygo" ]; then
	mkdir -p "$cache/tinygo"
	exec 9>"$cache/tinygo/lock"
	flock 9
	if [ ! -x "$root/bin/tinygo" ]; then
		echo "tinygo.sh: building TinyGo, once, in about a minute" >&2
		rm -rf "$root.part"
		build "$root.part"
		mv "$root.part" "$root"
	fi
fi
echo "$root/bin/tinygo"
