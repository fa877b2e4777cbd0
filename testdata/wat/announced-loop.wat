;; Logs a line and loops for ever.
(module
  (import "wp1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"announced-loop\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")
  (data (i32.const 1024) "looping")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 113)) ;; pointer 0, length 113
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (call $log (i32.const 1) (i32.const 1024) (i32.const 7))
    (loop $again (br $again))
    unreachable))
