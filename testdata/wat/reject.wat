;; Refuses every call that can be refused, with code 9 and a reason.
(module
  (import "wp1" "reject" (func $reject (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"reject\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\"]}")
  (data (i32.const 1024) "not on this node")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 85)) ;; pointer 0, length 85
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (drop (call $reject (i32.const 9) (i32.const 1024) (i32.const 16)))
    (i32.const 1)))
