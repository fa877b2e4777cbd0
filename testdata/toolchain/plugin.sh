#!/usr/bin/env bash
# plugin.sh PACKAGE-DIRECTORY OUT.wasm: builds one plugin with TinyGo, always to
# the same bytes. The target is wp1.json beside this script.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath "$2")
tinygo=$("$here/tinygo.sh")
cd "$1"
GOFLAGS=-buildvcs=false GOWORK=off "$tinygo" build -target="$here/wp1.json" -opt=s -no-debug -o "$out" .
