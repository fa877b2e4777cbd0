;; Begins with a table of 4,294,967,295 places.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"table-of-4-billion\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 76)) ;; pointer 0, length 76
  (table 4294967295 funcref)
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
