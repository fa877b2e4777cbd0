;; PreCreateContainer: adds one to the value of the key "calls", of which it writes the last digit to
;; the annotation example.com/kept. What the annotation example.com/do of the container says happens after
;; that: "trap", "fail" or "deny", which refuses the call.
(module
  (import "wp1" "map_get" (func $map_get (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "kv_set" (func $kv_set (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "reject" (func $reject (param i32 i32 i32) (result i32)))
  (import "wp1" "fail" (func $fail (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"kept\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"annotations\",\"state.kv\"]}")
  (data (i32.const 1024) "example.com/doexample.com/keptcallsasked to")
  (data (i32.const 2048) "0")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 106)) ;; pointer 0, length 106
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $word i32)
    (if (i32.eq (call $kv_get (i32.const 1054) (i32.const 5) (i32.const 2048) (i32.const 1)) (i32.const -3)) (then (return (i32.const -3))))
    (i32.store8 (i32.const 2048) (i32.add (i32.load8_u (i32.const 2048)) (i32.const 1)))
    (drop (call $kv_set (i32.const 1054) (i32.const 5) (i32.const 2048) (i32.const 1)))
    ;; container.annotations["example.com/kept"]
    (drop (call $map_set (i32.const 2) (i32.const 10) (i32.const 1038) (i32.const 16) (i32.const 2048) (i32.const 1)))
    ;; container.annotations["example.com/do"]
    (if (i32.eq (call $map_get (i32.const 2) (i32.const 10) (i32.const 1024) (i32.const 14) (i32.const 2048) (i32.const 64)) (i32.const 4))
      (then (local.set $word (i32.load (i32.const 2048)))))
    (if (i32.eq (local.get $word) (i32.const 0x70617274)) (then unreachable)) ;; "trap"
    (if (i32.eq (local.get $word) (i32.const 0x796e6564)) ;; "deny"
      (then (drop (call $reject (i32.const 0) (i32.const 1059) (i32.const 8))) (return (i32.const 1))))
    (if (i32.eq (local.get $word) (i32.const 0x6c696166)) ;; "fail"
      (then (call $fail (i32.const 1059) (i32.const 8)) (return (i32.const -4))))
    (i32.const 0)))
