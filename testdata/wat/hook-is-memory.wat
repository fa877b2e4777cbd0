;; Exports its memory as wp_hook too.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"hook-is-memory\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 72)) ;; pointer 0, length 72
  (export "wp_hook" (memory 0)))
