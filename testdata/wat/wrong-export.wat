;; Exports wp_hook with no parameter.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"wrong-export\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 73)) ;; pointer 0, length 73
  (func $wp_hook (export "wp_hook") (result i32) (i32.const 0)))
