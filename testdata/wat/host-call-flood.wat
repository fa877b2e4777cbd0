;; Asks for the time without end.
(module
  (import "wp1" "now" (func $now (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"host-call-flood\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 114)) ;; pointer 0, length 114
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (loop $again (drop (call $now)) (br $again))
    unreachable))
