;; Calls itself some millions of times, never deeply and never in a loop, and then sets an
;; annotation. A limit that looks at loops only does not stop it.
(module
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"fibonacci\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"annotations\"]}")
  (data (i32.const 1024) "example.com/fibonaccidone")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 100)) ;; pointer 0, length 100
  (func $fib (param $n i32) (result i32)
    (if (result i32) (i32.lt_u (local.get $n) (i32.const 2))
      (then (local.get $n))
      (else (i32.add
        (call $fib (i32.sub (local.get $n) (i32.const 1)))
        (call $fib (i32.sub (local.get $n) (i32.const 2)))))))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (drop (call $fib (i32.const 32)))
    ;; container.annotations["example.com/fibonacci"] = "done"
    (drop (call $map_set (i32.const 2) (i32.const 10)
      (i32.const 1024) (i32.const 21) (i32.const 1045) (i32.const 4)))
    (i32.const 0)))
