#!/usr/bin/env bash
# stress.sh: plays the tests of the bundled plugins in Go to modules whose garbage collector runs at each allocation, and overwrites what
# it frees. What the compiler has forgotten to tell the collector of is lost there at once, and not one day on a node: README.md.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A root of TinyGo with another runtime.
tinygo=$("$here/tinygo.sh")
root=${tinygo%/bin/tinygo}
mkdir "$scratch/root"
ln -s "$root/bin" "$root/targets" "$scratch/root/"
cp -r "$root/src" "$scratch/root/src"
collector=$scratch/root/src/runtime/gc_blocks.go
awk '
	/^func alloc\(/ { alloc = 1 }
	{ print }
	alloc && /^\tgcLock\.Lock\(\)$/ { print "\trunGC()"; alloc = 0; changed++ }
	/^\t\t\tfreeBlocks \+= freeLen$/ {
		print "\t\t\tfor i := uintptr(0); i < freeLen*bytesPerBlock; i++ {"
		print "\t\t\t\t*(*byte)(unsafe.Add(block.pointer(), i)) = 0xDD"
		print "\t\t\t}"
		changed++
	}
	END { if (changed != 2) { print "stress.sh: the collector of this TinyGo is another one" > "/dev/stderr"; exit 1 } }
' "$root/src/runtime/gc_blocks.go" > "$collector"

CGO_ENABLED=0 go build -buildvcs=false -o "$scratch/wasmproxy" ./cmd/wasmproxy
for source in plugins-wasm/*/main.go; do
	dir=${source%/main.go}
	name=${dir##*/}
	mkdir "$scratch/$name"
	TINYGOROOT=$scratch/root "$here/plugin.sh" "$dir" "$scratch/$name/$name.wasm"
	cp -r "$dir/testdata" "$scratch/$name/"
	echo '{"timeout": "60s", "tick-timeout": "60s", "limits": {"fuel": 100000000000, "tick-fuel": 100000000000}}' > "$scratch/$name/$name.json"
	"$scratch/wasmproxy" plugin test "$scratch/$name"
done
# A minute of ticks in one instance, in which quotas rise and fall.
CPU_BURST_MODULE=$scratch/cpu-burst/cpu-burst.wasm go test -count=1 -run TestModuleDecidesAsKoordlet ./plugins-wasm/cpu-burst
