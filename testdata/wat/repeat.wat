;; Calls one host function 900 times, for benchmarks. The first letter of its
;; config says which: g get, i get_i64, m map_get, d map_dump, s set_i64, n now;
;; any other, none.
(module
  (import "wp1" "config" (func $config (param i32 i32) (result i32)))
  (import "wp1" "get" (func $get (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "get_i64" (func $get_i64 (param i32 i32 i32) (result i32)))
  (import "wp1" "map_get" (func $map_get (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_dump" (func $map_dump (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "set_i64" (func $set_i64 (param i32 i32 i64) (result i32)))
  (import "wp1" "now" (func $now (result i64)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"repeat\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"resources\"]}")
  (data (i32.const 1024) "tier")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 95)) ;; pointer 0, length 95
  (func (export "wp_configure") (result i32)
    (drop (call $config (i32.const 512) (i32.const 64)))
    (i32.const 0))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $what i32) (local $n i32)
    (local.set $what (i32.load8_u (i32.const 512)))
    (loop $again
      ;; pod.name
      (if (i32.eq (local.get $what) (i32.const 0x67))
        (then (drop (call $get (i32.const 1) (i32.const 2) (i32.const 2048) (i32.const 256)))))
      ;; container.resources.cpu_quota
      (if (i32.eq (local.get $what) (i32.const 0x69))
        (then (drop (call $get_i64 (i32.const 2) (i32.const 65) (i32.const 2048)))))
      ;; pod.labels["tier"]
      (if (i32.eq (local.get $what) (i32.const 0x6d))
        (then (drop (call $map_get (i32.const 1) (i32.const 9) (i32.const 1024) (i32.const 4) (i32.const 2048) (i32.const 256)))))
      ;; pod.labels
      (if (i32.eq (local.get $what) (i32.const 0x64))
        (then (drop (call $map_dump (i32.const 1) (i32.const 9) (i32.const 2048) (i32.const 4096)))))
      (if (i32.eq (local.get $what) (i32.const 0x73))
        (then (drop (call $set_i64 (i32.const 2) (i32.const 65) (i64.const 100000)))))
      (if (i32.eq (local.get $what) (i32.const 0x6e))
        (then (drop (call $now))))
      (br_if $again (i32.lt_u (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 900))))
    (i32.const 0)))
