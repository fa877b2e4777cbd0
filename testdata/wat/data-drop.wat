;; Drops a data segment.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"data-drop\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 67)) ;; pointer 0, length 67
  (data $segment (i32.const 1024) "x")
  (func (data.drop $segment))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
