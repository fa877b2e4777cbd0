#!/bin/sh
# Builds the .wasm beside each .wat with Debian's wabt (1.0.32), which it
# installs if it is not there. The same sources give the same bytes.
set -eu
cd "$(dirname "$0")"
if ! command -v wat2wasm >/dev/null; then
	apt-get update -q
	apt-get install -q -y --no-install-recommends wabt
fi
for wat in *.wat; do
	wat2wasm --debug-names "$wat" -o "${wat%.wat}.wasm"
done
