;; Has no wp_hook.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"missing-hook\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 70)) ;; pointer 0, length 70
)
