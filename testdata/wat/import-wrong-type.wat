;; Imports now as if it took an i32.
(module
  (import "wp1" "now" (func (param i32) (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"import-wrong-type\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 75)) ;; pointer 0, length 75
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
