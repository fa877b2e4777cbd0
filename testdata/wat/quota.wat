;; Sets the CPU quota of a container to 200000 µs and says so in an annotation.
(module
  (import "wp1" "set_i64" (func $set_i64 (param i32 i32 i64) (result i32)))
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"quota\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"resources\",\"annotations\"]}")
  (data (i32.const 1024) "example.com/quota200000")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 108)) ;; pointer 0, length 108
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    ;; container.resources.cpu_quota
    (drop (call $set_i64 (i32.const 2) (i32.const 65) (i64.const 200000)))
    ;; container.annotations["example.com/quota"] = "200000"
    (drop (call $map_set (i32.const 2) (i32.const 10)
      (i32.const 1024) (i32.const 17) (i32.const 1041) (i32.const 6)))
    (i32.const 0)))
