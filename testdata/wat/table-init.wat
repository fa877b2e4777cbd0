;; Fills its table from a passive segment.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"table-init\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 68)) ;; pointer 0, length 68
  (table 4 funcref)
  (elem $segment func $f)
  (func $f (table.init $segment (i32.const 0) (i32.const 0) (i32.const 1)))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
