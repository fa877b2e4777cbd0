;; Gives a reason and returns an error.
(module
  (import "wp1" "fail" (func $fail (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"fail\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")
  (data (i32.const 1024) "tier is missing")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 103)) ;; pointer 0, length 103
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (call $fail (i32.const 1024) (i32.const 15))
    (i32.const -4)))
