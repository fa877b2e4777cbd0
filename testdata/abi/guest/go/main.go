// Command guest is the program of README.md, in Go for both of its compilers. It uses no
// part of package sdk: what is tested is the border itself.
package main

import "unsafe"

func main() {} // never runs

const manifest = `{"name":"conformance","version":"1.0.0","hooks":["PreRunPodSandbox","PostRunPodSandbox","PreCreateContainer","PostCreateContainer","PreStartContainer","PostStartContainer","PreUpdateContainerResources","PostUpdateContainerResources","PostStopContainer","PostRemoveContainer","PostStopPodSandbox","PreStopContainer","PreRemoveContainer","PreStopPodSandbox","PreRemovePodSandbox","PostRemovePodSandbox","PreUpdatePodSandboxResources","PostUpdatePodSandboxResources","PreExec","PostExec","PreExecSync","PostExecSync","PreAttach","PostAttach","PrePortForward","PostPortForward","PreCheckpointContainer","PostCheckpointContainer","PreCheckpointPod","PostCheckpointPod","PreRestorePod","PostRestorePod","PrePullImage","PostPullImage","PreRemoveImage","PostRemoveImage","Synchronize","Tick"],"tick_ms":1000,"capabilities":["store.read","resources","unified","annotations","labels","cgroup.write","metric","env","cgroup.read","cgroup.parent","runtime_handler","image","args","mounts","devices","cdi","user","update.others","state.kv","cri.raw","credentials","pod.limits","store.read.all"]}`

var (
	script  [384 << 10]byte
	pc      int
	buffer  [4096]byte
	texts   [1<<20 + 16]byte // where texts go that the script says by a byte and a number
	line    [9000]byte
	written int
	args    [8]int64
	given   int
	used    int // of texts
	shown   int // of buffer
	always  bool
)

func address(p *byte) int64 { return int64(uintptr(unsafe.Pointer(p))) }

//go:wasmexport wp_abi
func abiVersion() int32 { return 1 << 16 }

//go:wasmexport wp_manifest
func wpManifest() int64 { return address(unsafe.StringData(manifest))<<32 | int64(len(manifest)) }

// The configuration is a JSON string of digits, which are decoded in place.
//
//go:wasmexport wp_configure
func wpConfigure() int32 {
	n := int(config(int32(address(&script[0])), int32(len(script))))
	if n == 0 {
		return 0
	}
	for i := 0; 2*i+2 < n; i++ {
		script[i] = digit(script[2*i+1])<<4 | digit(script[2*i+2])
	}
	return run()
}

//go:wasmexport wp_hook
func wpHook(hook int32) int32 {
	number(int64(hook))
	say()
	return run()
}

func digit(c byte) byte {
	if c < 'a' {
		return c - '0'
	}
	return c - 'a' + 10
}

func next() byte {
	pc++
	return script[pc-1]
}

func word() (v int) {
	for i := 0; i < 32; i += 8 {
		v |= int(next()) << i
	}
	return v
}

func push(v int64) {
	args[given] = v
	given++
}

// read takes one argument of the script for the next call.
func read() {
	switch next() {
	case 0: // a number
		low := uint32(word())
		push(int64(low) | int64(word())<<32)
	case 1: // a text
		n := word()
		push(address(&script[pc]))
		push(int64(n))
		pc += n
	case 2: // one byte, many times
		n := word()
		c := next()
		fill(texts[used:used+n], c)
		push(address(&texts[used]))
		push(int64(n))
		used += n
	case 3: // a buffer
		push(room(word()))
		push(int64(shown))
	case 4: // a place that is shown whatever the result
		push(room(word()))
		always = true
	}
}

// fill copies what it has filled already: a million bytes one by one would take all the
// fuel of a call.
func fill(b []byte, c byte) {
	if len(b) > 0 {
		b[0] = c
	}
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

func room(n int) int64 {
	shown = n
	fill(buffer[:n], 0xaa)
	return address(&buffer[0])
}

// run carries the script out up to its next end, and returns what that says.
func run() int32 {
	for {
		op := next()
		if op == 0xff {
			return int32(word())
		}
		given, used, shown, always = 0, 0, 0, false
		for range next() {
			read()
		}
		call(op)
	}
}

func put(c byte) {
	line[written] = c
	written++
}

func say() {
	log(1, int32(address(&line[0])), int32(written))
	written = 0
}

func number(v int64) {
	rest := uint64(v)
	if v < 0 {
		put('-')
		rest = -rest
	}
	if rest >= 10 {
		number(int64(rest / 10))
	}
	put('0' + byte(rest%10))
}

// tell says a result, and what is in the buffer.
func tell(result int64) {
	number(result)
	if !always {
		shown = int(max(0, min(result, int64(shown))))
	}
	if shown > 0 {
		put(' ')
	}
	for _, b := range buffer[:shown] {
		put("0123456789abcdef"[b>>4])
		put("0123456789abcdef"[b&15])
	}
	say()
}

func a(i int) int32 { return int32(args[i]) }

func call(op byte) {
	switch op {
	case 0:
		tell(int64(get(a(0), a(1), a(2), a(3))))
	case 1:
		tell(int64(getI64(a(0), a(1), a(2))))
	case 2:
		tell(int64(mapGet(a(0), a(1), a(2), a(3), a(4), a(5))))
	case 3:
		tell(int64(mapDump(a(0), a(1), a(2), a(3))))
	case 4:
		tell(int64(listDump(a(0), a(1), a(2), a(3))))
	case 5:
		tell(int64(criRaw(a(0), a(1))))
	case 6:
		tell(int64(cgroupGet(a(0), a(1), a(2), a(3), a(4))))
	case 7:
		tell(int64(podFind(a(0), a(1), a(2))))
	case 8:
		tell(int64(podList(a(0), a(1), a(2), a(3))))
	case 9:
		tell(int64(containerList(a(0), a(1), a(2))))
	case 10:
		tell(int64(setI64(a(0), a(1), args[2])))
	case 11:
		tell(int64(setBytes(a(0), a(1), a(2), a(3))))
	case 12:
		tell(int64(mapSet(a(0), a(1), a(2), a(3), a(4), a(5))))
	case 13:
		tell(int64(mapDel(a(0), a(1), a(2), a(3))))
	case 14:
		tell(int64(listSet(a(0), a(1), a(2), a(3))))
	case 15:
		tell(int64(listAdd(a(0), a(1), a(2), a(3))))
	case 16:
		tell(int64(listDel(a(0), a(1), a(2), a(3))))
	case 17:
		tell(int64(cgroupSet(a(0), a(1), a(2), a(3), a(4))))
	case 18:
		tell(int64(reject(a(0), a(1), a(2))))
	case 19:
		fail(a(0), a(1))
	case 20:
		abort(a(0), a(1))
	case 21:
		tell(int64(config(a(0), a(1))))
	case 22:
		log(a(0), a(1), a(2))
	case 23:
		tell(int64(logLevel()))
	case 24:
		tell(int64(metric(a(0), a(1), a(2), args[3])))
	case 25:
		tell(int64(kvGet(a(0), a(1), a(2), a(3))))
	case 26:
		tell(int64(kvSet(a(0), a(1), a(2), a(3))))
	case 27:
		tell(int64(kvDel(a(0), a(1))))
	case 28:
		tell(now())
	case 29:
		tell(int64(random(a(0), a(1))))
	case 30:
		tell(int64(feature(a(0))))
	case 31:
		tell(int64(cgroupRead(a(0), a(1), a(2), a(3), a(4), a(5))))
	case 32:
		tell(int64(withdraw(a(0), a(1), a(2), a(3))))
	case 33:
		tell(int64(conflict(a(0), a(1))))
	}
}
