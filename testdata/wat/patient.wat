;; Sets the CPU quota as conflict.wat does, and goes on without it if that is refused.
(module
  (import "wp1" "set_i64" (func $set_i64 (param i32 i32 i64) (result i32)))
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"patient\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"resources\",\"annotations\"]}")
  (data (i32.const 1024) "example.com/patientyes")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 110)) ;; pointer 0, length 110
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (drop (call $set_i64 (i32.const 2) (i32.const 65) (i64.const 150000)))
    ;; container.annotations["example.com/patient"] = "yes"
    (drop (call $map_set (i32.const 2) (i32.const 10)
      (i32.const 1024) (i32.const 19) (i32.const 1043) (i32.const 3)))
    (i32.const 0)))
