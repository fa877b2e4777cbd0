;; PreCreateContainer: says the value of the environment variable PASSWORD in every way in which a plugin
;; can say anything: its log, stderr, an annotation, a metric's name and a kept value. Then, by the first
;; letter of its config, a string: it fails with it as the reason, refuses the call, aborts, or traps.
(module
  (import "wp1" "config" (func $config (param i32 i32) (result i32)))
  (import "wp1" "map_get" (func $map_get (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "log" (func $log (param i32 i32 i32)))
  (import "wp1" "metric" (func $metric (param i32 i32 i32 i64) (result i32)))
  (import "wp1" "kv_set" (func $kv_set (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "fail" (func $fail (param i32 i32)))
  (import "wp1" "abort" (func $abort (param i32 i32)))
  (import "wp1" "reject" (func $reject (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"teller\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"annotations\",\"env\",\"metric\",\"state.kv\"]}")
  (data (i32.const 512) "PASSWORDexample.com/password")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 123)) ;; pointer 0
  (func (export "wp_hook") (param $hook i32) (result i32)
    (local $n i32) (local $how i32)
    (drop (call $config (i32.const 1024) (i32.const 1024)))
    (local.set $how (i32.load8_u (i32.const 1025)))
    ;; container.env["PASSWORD"] to 4096
    (local.set $n (call $map_get (i32.const 2) (i32.const 11) (i32.const 512) (i32.const 8) (i32.const 4096) (i32.const 1024)))
    (if (i32.lt_s (local.get $n) (i32.const 0)) (then (return (local.get $n))))
    (call $log (i32.const 1) (i32.const 4096) (local.get $n))
    (i32.store (i32.const 2048) (i32.const 4096))
    (i32.store (i32.const 2052) (local.get $n))
    (drop (call $fd_write (i32.const 2) (i32.const 2048) (i32.const 1) (i32.const 2056)))
    (drop (call $metric (i32.const 0) (i32.const 4096) (local.get $n) (i64.const 1)))
    (drop (call $kv_set (i32.const 512) (i32.const 8) (i32.const 4096) (local.get $n)))
    (drop (call $map_set (i32.const 2) (i32.const 10) (i32.const 520) (i32.const 20) (i32.const 4096) (local.get $n)))
    (if (i32.eq (local.get $how) (i32.const 102)) ;; f
      (then (call $fail (i32.const 4096) (local.get $n)) (return (i32.const -4))))
    (if (i32.eq (local.get $how) (i32.const 114)) ;; r
      (then (drop (call $reject (i32.const 9) (i32.const 4096) (local.get $n))) (return (i32.const 1))))
    (if (i32.eq (local.get $how) (i32.const 97)) ;; a
      (then (call $abort (i32.const 4096) (local.get $n))))
    (if (i32.eq (local.get $how) (i32.const 116)) ;; t
      (then (unreachable)))
    (i32.const 0)))
