;; Has no wp_abi.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"missing-abi\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_manifest") (result i64) (i64.const 69)) ;; pointer 0, length 69
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
