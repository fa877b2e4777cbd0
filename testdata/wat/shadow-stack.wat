;; Recurses without end and keeps 1 KiB of each call in memory, as compilers do, until the stack pointer is below address 0. In PreRunPodSandbox it is good.
(module
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (global $stack_pointer (mut i32) (i32.const 0x10000))
  (data (i32.const 0) "{\"name\":\"shadow-stack\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\"],\"capabilities\":[\"annotations\"]}")
  (data (i32.const 1024) "example.com/wellyes")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 122)) ;; pointer 0, length 122
  ;; pod.annotations["example.com/well"] = "yes"
  (func $well (result i32)
    (call $map_set (i32.const 1) (i32.const 10) (i32.const 1024) (i32.const 16) (i32.const 1040) (i32.const 3)))
  (func $deeper (param $n i32) (result i32)
    (local $here i32)
    (global.set $stack_pointer (local.tee $here (i32.sub (global.get $stack_pointer) (i32.const 1024))))
    (i32.store (local.get $here) (local.get $n))
    (i32.add (call $deeper (i32.add (local.get $n) (i32.const 1))) (i32.load (local.get $here))))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (if (i32.eq (local.get $hook) (i32.const 1)) (then (return (call $well))))
    (call $deeper (i32.const 0))))
