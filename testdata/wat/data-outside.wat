;; Has a data segment that does not fit into its memory.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"data-outside\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 70)) ;; pointer 0, length 70
  (data (i32.const 65535) "xy")
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
