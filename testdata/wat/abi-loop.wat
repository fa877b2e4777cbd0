;; Loops for ever where it is asked for its ABI.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"abi-loop\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (loop $again (br $again)) unreachable)
  (func (export "wp_manifest") (result i64) (i64.const 66)) ;; pointer 0, length 66
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
