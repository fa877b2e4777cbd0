;; Marks its memory, in and outside of its data segments, and its globals, and traps if it finds a mark
;; of an earlier call or if its segments or its table are not as it declares them. In PreRunPodSandbox it is good.
(module
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (type $number (func (result i32)))
  (table 2 2 funcref)
  (elem (i32.const 1) $seven)
  (global $mark (mut i32) (i32.const 0))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"state-across-calls\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\"],\"capabilities\":[\"annotations\"]}")
  (data (i32.const 1024) "example.com/wellyes")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 128)) ;; pointer 0, length 128
  ;; pod.annotations["example.com/well"] = "yes"
  (func $well (result i32)
    (call $map_set (i32.const 1) (i32.const 10) (i32.const 1024) (i32.const 16) (i32.const 1040) (i32.const 3)))
  (func $seven (result i32) (i32.const 7))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (if (i32.eq (local.get $hook) (i32.const 1)) (then (return (call $well))))
    (if (i32.or (i32.load (i32.const 8192)) (global.get $mark)) (then unreachable))
    (if (i32.ne (i32.load8_u (i32.const 1024)) (i32.const 0x65)) (then unreachable)) ;; "e"
    (if (i32.ne (call_indirect (type $number) (i32.const 1)) (i32.const 7)) (then unreachable))
    (i32.store (i32.const 8192) (i32.const 1))
    (i32.store8 (i32.const 1024) (i32.const 0))
    (global.set $mark (i32.const 1))
    (i32.const 0)))
