#!/usr/bin/env bash
# rust.sh: sets up the Rust that builds plugins, and prints the path of its cargo;
# rustc, rustdoc and clippy are beside it. With everything in place it only prints.
#
# The compiler is Debian's rustc-web, the one that Firefox is built with; Debian has
# no standard library for WebAssembly of it, so that is built here from Debian's
# source of it, without the network. Missing packages are installed, for which it
# must be root. The result is kept in .cache/rust at the top of the repository, or
# beneath WASMPROXY_CACHE. Whoever has a Rust with the target
# wasm32-unknown-unknown needs none of this.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/packages.sh"
cache=$(realpath -m "${WASMPROXY_CACHE:-$here/../../.cache}")
packages=(rustc-web cargo-web rust-web-clippy rust-web-src rust-web-llvm lld-22 gcc libc6-dev)
target=wasm32-unknown-unknown

# key names everything that the compiler is made of.
key() {
	{
		dpkg-query -W "${packages[@]}"
		cat "$here/rust.sh"
	} | sha256sum | cut -c1-16
}

# write_commands puts commands at $1/bin that use the sysroot $1, whatever other Rust
# is on PATH: rustup's looks like this one and cannot read its libraries.
write_commands() {
	local command
	mkdir -p "$1/bin"
	cat > "$1/bin/cargo" <<-'END'
		#!/bin/sh
		root=$(dirname "$(dirname "$(realpath "$0")")")
		unset RUSTUP_TOOLCHAIN RUSTC RUSTDOC
		PATH=$root/bin:/usr/bin:$PATH SYSROOT=$root exec /usr/bin/cargo "$@"
	END
	for command in rustc rustdoc; do
		cat > "$1/bin/$command" <<-END
			#!/bin/sh
			root=\$(dirname "\$(dirname "\$(realpath "\$0")")")
			exec /usr/bin/$command --sysroot "\$root" "\$@"
		END
	done
	# clippy-driver takes the name of the rustc that it stands for first, and SYSROOT.
	ln -sf /usr/bin/clippy-driver /usr/bin/cargo-clippy "$1/bin/"
	chmod +x "$1/bin/cargo" "$1/bin/rustc" "$1/bin/rustdoc"
}

# build_std builds the standard library in $1/work and moves it to $1. Debian's
# source has the crates that it needs in vendor. -Zbuild-std is a nightly flag,
# which RUSTC_BOOTSTRAP allows; bitcode is for guests that are built with LTO. The
# names of symbols hold the directory of the source, so that it must be Debian's.
build_std() {
	local work=$1/work source
	source=$(/usr/bin/rustc --print sysroot)/lib/rustlib/src/rust
	mkdir -p "$work/src" "$work/.cargo"
	: > "$work/src/lib.rs"
	printf '[package]\nname = "std-for-wasm"\nversion = "0.0.0"\nedition = "2021"\n' > "$work/Cargo.toml"
	printf '[source.crates-io]\nreplace-with = "vendor"\n[source.vendor]\ndirectory = "%s"\n' "$source/library/vendor" > "$work/.cargo/config.toml"
	(
		cd "$work"
		unset RUSTUP_TOOLCHAIN
		RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc RUSTFLAGS="-Cembed-bitcode=yes --remap-path-prefix=$source=/rust" \
			CARGO_HOME=$work/home CARGO_TARGET_DIR=$work/target CARGO_PROFILE_RELEASE_OPT_LEVEL=s \
			/usr/bin/cargo build -q --offline --release --target "$target" -Zbuild-std=std,panic_abort
	)
	mkdir -p "$1/lib/rustlib/$target/lib"
	find "$work/target/$target/release/deps" -name 'lib*.rlib' ! -name 'libstd_for_wasm-*' \
		-exec mv -t "$1/lib/rustlib/$target/lib" {} +
	rm -rf "$work"
}

# build puts a sysroot at $1: Debian's for this machine, ours for WebAssembly.
build() {
	local host
	host=$(/usr/bin/rustc -vV | sed -n 's/^host: //p')
	mkdir -p "$1/lib/rustlib"
	ln -s "$(/usr/bin/rustc --print sysroot)/lib/rustlib/$host" "$1/lib/rustlib/"
	write_commands "$1"
	build_std "$1"
}

install_packages "${packages[@]}"
root=$cache/rust/$(key)
if [ ! -x "$root/bin/cargo" ]; then
	mkdir -p "$cache/rust"
	exec 9>"$cache/rust/lock"
	flock 9
	if [ ! -x "$root/bin/cargo" ]; then
		echo "rust.sh: building Rust's standard library for $target, once, in about a minute" >&2
		rm -rf "$root.part"
		build "$root.part"
		mv "$root.part" "$root"
	fi
fi
echo "$root/bin/cargo"
