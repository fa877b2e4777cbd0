;; Returns 7, which means nothing.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"nonsense\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 107)) ;; pointer 0, length 107
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (i32.const 7)))
