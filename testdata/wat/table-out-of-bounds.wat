;; Calls the function in place 4294967295 of a table that has one place, which traps. In PreRunPodSandbox it is good.
(module
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (type $step (func))
  (table 1 1 funcref)
  (elem (i32.const 0) $nothing)
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"table-out-of-bounds\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\"],\"capabilities\":[\"annotations\"]}")
  (data (i32.const 1024) "example.com/wellyes")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 129)) ;; pointer 0, length 129
  ;; pod.annotations["example.com/well"] = "yes"
  (func $well (result i32)
    (call $map_set (i32.const 1) (i32.const 10) (i32.const 1024) (i32.const 16) (i32.const 1040) (i32.const 3)))
  (func $nothing)
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (if (i32.eq (local.get $hook) (i32.const 1)) (then (return (call $well))))
    (call_indirect (type $step) (i32.const -1))
    (i32.const 0)))
