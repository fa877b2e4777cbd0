;; Allocates until it is refused, and then traps as allocators do. Each page is written to.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"alloc\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 104)) ;; pointer 0, length 104
  (func $out_of_memory unreachable)
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $page i32)
    (loop $again
      (local.set $page (memory.grow (i32.const 1)))
      (if (i32.eq (local.get $page) (i32.const -1)) (then (call $out_of_memory)))
      (i32.store (i32.mul (local.get $page) (i32.const 65536)) (i32.const 1))
      (br $again))
    unreachable))
