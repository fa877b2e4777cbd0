;; Prints what a Go program prints when it panics, then traps.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"panic\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")
  (data (i32.const 1024) "panic: tier is missing\n\ngoroutine 1 [running]:\nmain.boost(...)\n\t/src/plugin/main.go:12 +0x2a\nexit status 2")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 104)) ;; pointer 0, length 104
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (i32.store (i32.const 2048) (i32.const 1024)) ;; one buffer: its address
    (i32.store (i32.const 2052) (i32.const 93)) ;; and its length
    (drop (call $fd_write (i32.const 2) (i32.const 2048) (i32.const 1) (i32.const 2056)))
    unreachable))
