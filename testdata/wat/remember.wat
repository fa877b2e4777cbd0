;; Leaves a mark wherever it can remember one: in its memory, in memory that it grew by 16 pages, in
;; globals of all types, one of them exported. Writes to the annotation example.com/found which marks
;; it found, as six digits of 0 or 1 in that order. With the annotation example.com/do it grows by 9 MiB
;; ("much"), traps at the end ("trap") or exits ("exit").
(module
  (import "wp1" "map_get" (func $map_get (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "{\"name\":\"remember\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"annotations\"]}")
  (data (i32.const 1024) "example.com/doexample.com/found")
  (global $i32 (mut i32) (i32.const 0))
  (global $constant i32 (i32.const 7))
  (global $i64 (mut i64) (i64.const 0))
  (global $f32 (mut f32) (f32.const 0))
  (global $f64 (export "visible") (mut f64) (f64.const 0))

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 99)) ;; pointer 0, length 99
  ;; digit writes whether there is a mark to the n-th place of the answer.
  (func $digit (param $n i32) (param $mark i32)
    (i32.store8 (i32.add (i32.const 2048) (local.get $n)) (i32.add (i32.const 0x30) (local.get $mark))))
  (func $look
    (call $digit (i32.const 0) (i32.ne (i32.load (i32.const 4096)) (i32.const 0)))
    (call $digit (i32.const 1) (i32.const 0))
    (if (i32.gt_u (memory.size) (i32.const 2))
      (then (call $digit (i32.const 1) (i32.ne (i32.load (i32.const 131072)) (i32.const 0)))))
    (call $digit (i32.const 2) (i32.ne (global.get $i32) (i32.const 0)))
    (call $digit (i32.const 3) (i64.ne (global.get $i64) (i64.const 0)))
    (call $digit (i32.const 4) (f32.ne (global.get $f32) (f32.const 0)))
    (call $digit (i32.const 5) (f64.ne (global.get $f64) (f64.const 0))))
  (func $mark
    (drop (memory.grow (i32.const 16)))
    (i32.store (i32.const 4096) (i32.const 1))
    (i32.store (i32.const 131072) (i32.const 1))
    (global.set $i32 (global.get $constant))
    (global.set $i64 (i64.const 0x123456789abcdef0))
    (global.set $f32 (f32.const 1.5))
    (global.set $f64 (f64.const -2.5)))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $word i32)
    (call $look)
    (call $mark)
    ;; container.annotations["example.com/do"]
    (if (i32.eq (call $map_get (i32.const 2) (i32.const 10) (i32.const 1024) (i32.const 14) (i32.const 3072) (i32.const 64)) (i32.const 4))
      (then (local.set $word (i32.load (i32.const 3072)))))
    (if (i32.eq (local.get $word) (i32.const 0x6863756d)) (then (drop (memory.grow (i32.const 144))))) ;; "much"
    (if (i32.eq (local.get $word) (i32.const 0x70617274)) (then unreachable)) ;; "trap"
    (if (i32.eq (local.get $word) (i32.const 0x74697865)) (then (call $proc_exit (i32.const 1)))) ;; "exit"
    ;; container.annotations["example.com/found"]
    (call $map_set (i32.const 2) (i32.const 10) (i32.const 1038) (i32.const 17) (i32.const 2048) (i32.const 6))))
