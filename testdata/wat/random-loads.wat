;; Loads from random places of 16 MiB, for ever: each misses the caches. In PreRunPodSandbox it is good.
(module
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 257)
  (data (i32.const 0) "{\"name\":\"random-loads\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\"],\"capabilities\":[\"annotations\"]}")
  (data (i32.const 1024) "example.com/wellyes")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 122)) ;; pointer 0, length 122
  ;; pod.annotations["example.com/well"] = "yes"
  (func $well (result i32)
    (call $map_set (i32.const 1) (i32.const 10) (i32.const 1024) (i32.const 16) (i32.const 1040) (i32.const 3)))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $n i32)
    (if (i32.eq (local.get $hook) (i32.const 1)) (then (return (call $well))))
    (loop $again
      ;; the next place depends on what was loaded, so that no two loads overlap
      (local.set $n (i32.add (i32.mul (local.get $n) (i32.const 1664525)) (i32.const 1013904223)))
      (local.set $n (i32.add (local.get $n) (i32.load (i32.and (i32.shr_u (local.get $n) (i32.const 4)) (i32.const 0xfffff8)))))
      (br $again))
    unreachable))
