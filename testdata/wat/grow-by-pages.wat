;; Grows its memory page by page, writing to each, until that is refused, and then goes on as if
;; nothing were wrong. Traps if a page that it begins with holds what an earlier call wrote. In PreRunPodSandbox it is good.
(module
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"grow-by-pages\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\"],\"capabilities\":[\"annotations\"]}")
  (data (i32.const 1024) "example.com/wellyes")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 123)) ;; pointer 0, length 123
  ;; pod.annotations["example.com/well"] = "yes"
  (func $well (result i32)
    (call $map_set (i32.const 1) (i32.const 10) (i32.const 1024) (i32.const 16) (i32.const 1040) (i32.const 3)))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $page i32)
    (if (i32.eq (local.get $hook) (i32.const 1)) (then (return (call $well))))
    (local.set $page (memory.size))
    (loop $look
      (local.set $page (i32.sub (local.get $page) (i32.const 1)))
      (if (i32.gt_s (local.get $page) (i32.const 0))
        (then
          (if (i32.load (i32.mul (local.get $page) (i32.const 65536))) (then unreachable))
          (br $look))))
    (loop $again
      (local.set $page (memory.grow (i32.const 1)))
      (if (i32.ne (local.get $page) (i32.const -1))
        (then
          (i32.store (i32.mul (local.get $page) (i32.const 65536)) (i32.const 1))
          (br $again))))
    (i32.const 0)))
