;; Sets annotations of 64 KiB under ever new keys, for ever. In PreRunPodSandbox it is good.
(module
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "{\"name\":\"change-flood\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\"],\"capabilities\":[\"annotations\"]}")
  (data (i32.const 1024) "example.com/wellyes")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 122)) ;; pointer 0, length 122
  ;; pod.annotations["example.com/well"] = "yes"
  (func $well (result i32)
    (call $map_set (i32.const 1) (i32.const 10) (i32.const 1024) (i32.const 16) (i32.const 1040) (i32.const 3)))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (if (i32.eq (local.get $hook) (i32.const 1)) (then (return (call $well))))
    (memory.fill (i32.const 2048) (i32.const 0x78) (i32.const 0x11000))
    (loop $again
      ;; the key is "xxxx…" with four bytes that count, from "AAAA" on
      (i32.store (i32.const 2048) (i32.add (i32.const 0x41414141) (local.get $hook)))
      (local.set $hook (i32.add (local.get $hook) (i32.const 1)))
      (if (i32.gt_u (i32.and (local.get $hook) (i32.const 0xff)) (i32.const 25))
        (then (local.set $hook (i32.add (i32.and (local.get $hook) (i32.const 0xff00)) (i32.const 0x100)))))
      (drop (call $map_set (i32.const 2) (i32.const 10) (i32.const 2048) (i32.const 8) (i32.const 4096) (i32.const 65536)))
      (br $again))
    unreachable))
