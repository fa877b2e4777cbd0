;; Sets the variable TIER of a container, and its annotation example.com/tier to the same.
(module
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"own-env\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"annotations\",\"env\"]}")
  (data (i32.const 256) "TIERexample.com/tiergold-tier")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 104)) ;; pointer 0, length 104
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (drop (call $map_set (i32.const 2) (i32.const 11) (i32.const 256) (i32.const 4) (i32.const 276) (i32.const 9)))
    (call $map_set (i32.const 2) (i32.const 10) (i32.const 260) (i32.const 16) (i32.const 276) (i32.const 9))))
