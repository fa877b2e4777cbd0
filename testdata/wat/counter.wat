;; PreCreateContainer: counts its calls on the host, in kv under "n", and writes the count, a letter
;; from "a" on, to the annotation example.com/count; and in the metric calls_total.
(module
  (import "wp1" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "kv_set" (func $kv_set (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "metric" (func $metric (param i32 i32 i32 i64) (result i32)))
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"counter\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"annotations\",\"metric\",\"state.kv\"]}")
  (data (i32.const 512) "ncalls_totalexample.com/count")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 118)) ;; pointer 0, length 118
  (func (export "wp_hook") (param $hook i32) (result i32)
    (local $r i32)
    ;; "a" is 97; the letter is at 1024
    (i32.store8 (i32.const 1024) (i32.const 97))
    (if (i32.eq (call $kv_get (i32.const 512) (i32.const 1) (i32.const 1025) (i32.const 1)) (i32.const 1))
      (then (i32.store8 (i32.const 1024) (i32.add (i32.load8_u (i32.const 1025)) (i32.const 1)))))
    (local.set $r (call $kv_set (i32.const 512) (i32.const 1) (i32.const 1024) (i32.const 1)))
    (if (local.get $r) (then (return (local.get $r))))
    (local.set $r (call $metric (i32.const 0) (i32.const 513) (i32.const 11) (i64.const 1)))
    (if (local.get $r) (then (return (local.get $r))))
    (call $map_set (i32.const 2) (i32.const 10) (i32.const 524) (i32.const 17) (i32.const 1024) (i32.const 1))))
