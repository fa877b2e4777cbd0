;; Calls itself until its stack ends in its start function.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"start-recursion\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 73)) ;; pointer 0, length 73
  (func $boot (call $boot))
  (start $boot)
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
