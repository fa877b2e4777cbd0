;; Exports a global of its own under a name of the meter.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"export-fuel-name\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 74)) ;; pointer 0, length 74
  (global $g (mut i64) (i64.const 1000000000000))
  (export "__wp_fuel" (global $g))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
