;; Calls reject and returns 0.
(module
  (import "wp1" "reject" (func $reject (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"reject-forgotten\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")
  (data (i32.const 1024) "no way")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 115)) ;; pointer 0, length 115
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (drop (call $reject (i32.const 9) (i32.const 1024) (i32.const 6)))
    (i32.const 0)))
