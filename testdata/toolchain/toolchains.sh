#!/usr/bin/env bash
# toolchains.sh: sets up everything that builds guests, TinyGo, Rust and clang, and
# prints the directories of their commands as PATH has them:
#
#	PATH=$(testdata/toolchain/toolchains.sh):$PATH
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
path=
for toolchain in tinygo rust clang; do
	command=$("$here/$toolchain.sh")
	path=$path${path:+:}$(dirname "$command")
done
echo "$path"
