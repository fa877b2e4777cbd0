;; Has a function with two results.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"multi-value\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 69)) ;; pointer 0, length 69
  (func (result i32 i32) (i32.const 1) (i32.const 2))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
