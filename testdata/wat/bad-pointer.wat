;; Hands over a string that begins past the end of its memory.
(module
  (import "wp1" "set_bytes" (func $set_bytes (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"bad-pointer\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"],\"capabilities\":[\"resources\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 139)) ;; pointer 0, length 139
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (call $set_bytes (i32.const 1) (i32.const 8) (i32.const 0x7fffffff) (i32.const 4))))
