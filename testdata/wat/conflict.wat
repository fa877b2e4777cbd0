;; Sets the CPU quota of a container to 150000 µs, which is not what quota.wat wants, and returns
;; the error if that is refused.
(module
  (import "wp1" "set_i64" (func $set_i64 (param i32 i32 i64) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"conflict\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"resources\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 97)) ;; pointer 0, length 97
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (call $set_i64 (i32.const 2) (i32.const 65) (i64.const 150000))))
