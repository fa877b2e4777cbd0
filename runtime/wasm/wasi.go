package wasm

import (
	"context"
	"encoding/binary"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// wasiModule is WASI preview 1, as far as guests of Go, TinyGo, Rust and C need
// it to start and to print: no arguments, no environment, no files, no sockets,
// clocks that show the event's time and random numbers that depend on nothing
// but the event. See
// https://github.com/WebAssembly/WASI/blob/main/legacy/preview1/docs.md
const wasiModule = "wasi_snapshot_preview1"

// Errors of WASI.
const (
	wasiOK     = 0
	wasiEBADF  = 8
	wasiEINVAL = 28
	wasiENOSYS = 52
)

// wasiParams are the parameters of each function, i for i32 and I for i64. All
// return an error number but proc_exit, which does not return.
var wasiParams = map[string]string{
	"args_get": "ii", "args_sizes_get": "ii", "environ_get": "ii", "environ_sizes_get": "ii",
	"clock_res_get": "ii", "clock_time_get": "iIi",
	"fd_advise": "iIIi", "fd_allocate": "iII", "fd_close": "i", "fd_datasync": "i", "fd_fdstat_get": "ii",
	"fd_fdstat_set_flags": "ii", "fd_fdstat_set_rights": "iII", "fd_filestat_get": "ii", "fd_filestat_set_size": "iI",
	"fd_filestat_set_times": "iIIi", "fd_pread": "iiiIi", "fd_prestat_dir_name": "iii", "fd_prestat_get": "ii",
	"fd_pwrite": "iiiIi", "fd_read": "iiii", "fd_readdir": "iiiIi", "fd_renumber": "ii", "fd_seek": "iIii",
	"fd_sync": "i", "fd_tell": "ii", "fd_write": "iiii",
	"path_create_directory": "iii", "path_filestat_get": "iiiii", "path_filestat_set_times": "iiiiIIi",
	"path_link": "iiiiiii", "path_open": "iiiiiIIii", "path_readlink": "iiiiii", "path_remove_directory": "iii",
	"path_rename": "iiiiii", "path_symlink": "iiiii", "path_unlink_file": "iii",
	"poll_oneoff": "iiii", "proc_exit": "i", "proc_raise": "i", "random_get": "ii", "sched_yield": "",
	"sock_accept": "iii", "sock_recv": "iiiiii", "sock_send": "iiiii", "sock_shutdown": "ii",
}

// wasi returns the functions of wasiModule.
func wasi() map[string]hostFunction {
	served := map[string]func(context.Context, *frame) int64{
		"args_sizes_get": nothing, "environ_sizes_get": nothing,
		"args_get": succeed, "environ_get": succeed, "sched_yield": succeed,
		"clock_res_get": clockResolution, "clock_time_get": clockTime,
		"fd_write": fdWrite, "fd_fdstat_get": fdStat, "poll_oneoff": poll,
		"random_get": randomGet, "proc_exit": procExit,
	}
	types := strings.NewReplacer("i", string([]byte{api.ValueTypeI32}), "I", string([]byte{api.ValueTypeI64}))
	functions := map[string]hostFunction{}
	for name, params := range wasiParams {
		f := hostFunction{signature: signature{Params: types.Replace(params), Results: string([]byte{api.ValueTypeI32})}, run: served[name]}
		if name == "proc_exit" {
			f.Results = ""
		}
		if f.run == nil {
			errno := int64(wasiENOSYS) // there is no such function, or no such file
			if strings.HasPrefix(name, "fd_") {
				errno = wasiEBADF
			}
			f.run, f.denied = func(context.Context, *frame) int64 { return errno }, true
		}
		functions[name] = f
	}
	return functions
}

func succeed(context.Context, *frame) int64 { return wasiOK }

// nothing answers that there are no arguments, or no environment: their number
// and their size.
func nothing(_ context.Context, f *frame) int64 {
	f.putUint32(0, 0)
	f.putUint32(1, 0)
	return wasiOK
}

// putUint32 writes v where argument i points to.
func (f *frame) putUint32(i int, v uint32) {
	binary.LittleEndian.PutUint32(f.region(uint32(f.stack[i]), 4), v)
}

func (f *frame) putUint64(i int, v uint64) {
	binary.LittleEndian.PutUint64(f.region(uint32(f.stack[i]), 8), v)
}

// maxVectors is how many buffers fd_write takes at a time. A guest that gives
// more gets the number of bytes that were written, and writes the rest.
const maxVectors = 16

// fdWrite takes what is written to stdout and stderr to the log.
func fdWrite(ctx context.Context, f *frame) int64 {
	fd, vectors, n := f.i32(0), uint32(f.stack[1]), uint32(f.stack[2])
	if fd != 1 && fd != 2 {
		return wasiEBADF
	}
	total := uint32(0)
	for i := range min(n, maxVectors) {
		vector := f.region(vectors+8*i, 8)
		b := f.region(binary.LittleEndian.Uint32(vector), binary.LittleEndian.Uint32(vector[4:]))
		f.write(ctx, int(fd-1), b)
		total += uint32(len(b))
		f.moved += len(b)
	}
	f.putUint32(3, total)
	return wasiOK
}

// fdStat says that stdin, stdout and stderr are character devices.
func fdStat(_ context.Context, f *frame) int64 {
	const characterDevice, writable = 2, 1 << 6
	fd := f.i32(0)
	if fd < 0 || fd > 2 {
		return wasiEBADF
	}
	stat := f.region(uint32(f.stack[1]), 24)
	clear(stat)
	stat[0] = characterDevice
	if fd > 0 {
		stat[8] = writable
	}
	return wasiOK
}

// maxRandom is how many random bytes are given at a time.
const maxRandom = 64 << 10

func randomGet(_ context.Context, f *frame) int64 {
	b := f.bytes(0)
	if len(b) > maxRandom {
		return wasiEINVAL
	}
	f.fill(b)
	f.moved += len(b)
	return wasiOK
}

func procExit(_ context.Context, f *frame) int64 {
	panic(trapf("exited with code %d", uint32(f.stack[0])))
}
