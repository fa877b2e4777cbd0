;; Logs 900 lines of 1 KiB and carries on.
(module
  (import "wp1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"log-flood\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 108)) ;; pointer 0, length 108
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $n i32)
    (memory.fill (i32.const 1024) (i32.const 0x78) (i32.const 1024))
    (loop $again
      (call $log (i32.const 1) (i32.const 1024) (i32.const 1024))
      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 900))))
    (i32.const 0)))
