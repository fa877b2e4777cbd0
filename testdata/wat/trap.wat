;; Traps in a function called boom.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"trap\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 103)) ;; pointer 0, length 103
  (func $boom unreachable)
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (call $boom)
    (i32.const 0)))
