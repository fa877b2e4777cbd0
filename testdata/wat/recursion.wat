;; Calls itself without end.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"recursion\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 108)) ;; pointer 0, length 108
  (func $deeper (param $n i32) (result i32)
    (i32.add (call $deeper (i32.add (local.get $n) (i32.const 1))) (i32.const 1)))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (call $deeper (local.get $hook))))
