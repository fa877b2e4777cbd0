;; Says a secret in every way in which a plugin can say anything: its log, stderr, an annotation, a metric's
;; label and name, a kept value. At PreCreateContainer that is the environment variable PASSWORD of the container, at Tick
;; that of the first container of the first pod, at PrePullImage the whole request. Then, by the first
;; letter of its config, a string: it fails with it as the reason, refuses the call, aborts, or traps.
(module
  (import "wp1" "config" (func $config (param i32 i32) (result i32)))
  (import "wp1" "map_get" (func $map_get (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "cri_raw" (func $cri_raw (param i32 i32) (result i32)))
  (import "wp1" "pod_list" (func $pod_list (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "container_list" (func $container_list (param i32 i32 i32) (result i32)))
  (import "wp1" "log" (func $log (param i32 i32 i32)))
  (import "wp1" "metric" (func $metric (param i32 i32 i32 i64) (result i32)))
  (import "wp1" "kv_set" (func $kv_set (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "fail" (func $fail (param i32 i32)))
  (import "wp1" "abort" (func $abort (param i32 i32)))
  (import "wp1" "reject" (func $reject (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"teller\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\",\"PrePullImage\",\"Tick\"],\"tick_ms\":1000,\"capabilities\":[\"annotations\",\"env\",\"metric\",\"state.kv\",\"cri.raw\",\"credentials\",\"store.read\"]}")
  (data (i32.const 512) "PASSWORDexample.com/password")
  (data (i32.const 4081) "told_total{by=\"")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 197)) ;; pointer 0

  ;; container.env["PASSWORD"] of an object to 4096
  (func $password (param $of i32) (result i32)
    (call $map_get (local.get $of) (i32.const 11) (i32.const 512) (i32.const 8) (i32.const 4096) (i32.const 1024)))
  ;; what there is to tell, to 4096: its length, or an error
  (func $learn (param $hook i32) (result i32)
    (if (i32.eq (local.get $hook) (i32.const 33)) ;; PrePullImage
      (then (return (call $cri_raw (i32.const 4096) (i32.const 1024)))))
    (if (i32.eq (local.get $hook) (i32.const 38))
      (then ;; Tick
        (drop (call $pod_list (i32.const 0) (i32.const 0) (i32.const 3072) (i32.const 4)))
        (drop (call $container_list (i32.load (i32.const 3072)) (i32.const 3076) (i32.const 4)))
        (return (call $password (i32.load (i32.const 3076))))))
    (call $password (i32.const 2)))
  ;; says the n bytes at 4096
  (func $tell (param $n i32)
    (call $log (i32.const 1) (i32.const 4096) (local.get $n))
    (i32.store (i32.const 2048) (i32.const 4096))
    (i32.store (i32.const 2052) (local.get $n))
    (drop (call $fd_write (i32.const 2) (i32.const 2048) (i32.const 1) (i32.const 2056)))
    (drop (call $metric (i32.const 0) (i32.const 4096) (local.get $n) (i64.const 1)))
    (i32.store16 (i32.add (i32.const 4096) (local.get $n)) (i32.const 0x7d22)) ;; "}
    (drop (call $metric (i32.const 0) (i32.const 4081) (i32.add (local.get $n) (i32.const 17)) (i64.const 1)))
    (drop (call $kv_set (i32.const 512) (i32.const 8) (i32.const 4096) (local.get $n)))
    (drop (call $map_set (i32.const 2) (i32.const 10) (i32.const 520) (i32.const 20) (i32.const 4096) (local.get $n))))

  (func (export "wp_hook") (param $hook i32) (result i32)
    (local $n i32) (local $how i32)
    (drop (call $config (i32.const 1024) (i32.const 1024)))
    (local.set $how (i32.load8_u (i32.const 1025)))
    (local.set $n (call $learn (local.get $hook)))
    (if (i32.lt_s (local.get $n) (i32.const 0)) (then (return (local.get $n))))
    (call $tell (local.get $n))
    (if (i32.eq (local.get $how) (i32.const 102)) ;; f
      (then (call $fail (i32.const 4096) (local.get $n)) (return (i32.const -4))))
    (if (i32.eq (local.get $how) (i32.const 114)) ;; r
      (then (drop (call $reject (i32.const 9) (i32.const 4096) (local.get $n))) (return (i32.const 1))))
    (if (i32.eq (local.get $how) (i32.const 97)) ;; a
      (then (call $abort (i32.const 4096) (local.get $n))))
    (if (i32.eq (local.get $how) (i32.const 116)) ;; t
      (then (unreachable)))
    (i32.const 0)))
