;; Prints 16 times 59,999 letters and a newline, and 16 times 60,000 empty lines and carries on.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"print-flood\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 110)) ;; pointer 0, length 110
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $n i32)
    ;; 16 buffers, all the same
    (loop $buffers
      (i32.store (i32.add (i32.const 512) (i32.mul (local.get $n) (i32.const 8))) (i32.const 1024))
      (i32.store (i32.add (i32.const 516) (i32.mul (local.get $n) (i32.const 8))) (i32.const 60000))
      (br_if $buffers (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 16))))
    (memory.fill (i32.const 1024) (i32.const 0x78) (i32.const 59999))
    (i32.store8 (i32.const 61023) (i32.const 0x0a))
    (drop (call $fd_write (i32.const 2) (i32.const 512) (i32.const 16) (i32.const 700)))
    (memory.fill (i32.const 1024) (i32.const 0x0a) (i32.const 60000))
    (drop (call $fd_write (i32.const 1) (i32.const 512) (i32.const 16) (i32.const 700)))
    (i32.const 0)))
