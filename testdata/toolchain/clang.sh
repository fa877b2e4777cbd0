#!/usr/bin/env bash
# clang.sh: sets up the C compiler that builds WebAssembly, and prints the path of
# its command. It is Debian 12's LLVM 19, as TinyGo's is; `--target=wasm32` needs
# nothing else, and finds its own linker.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/packages.sh"
install_packages clang-19 lld-19 >&2
echo /usr/lib/llvm-19/bin/clang
