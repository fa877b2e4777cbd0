;; Calls the host without end in its start function.
(module
  (import "wp1" "now" (func $now (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"start-host-calls\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 74)) ;; pointer 0, length 74
  (func $boot (loop $again (drop (call $now)) (br $again)))
  (start $boot)
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
