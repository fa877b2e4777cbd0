;; Loops for ever in its start function.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"start-loop\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 68)) ;; pointer 0, length 68
  (func $boot (loop $again (br $again)))
  (start $boot)
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
