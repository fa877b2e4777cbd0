;; Loops 10,000,000,000 times, which takes seconds, and then is done: what loop.wat does, for a test
;; that has to end without a time limit too.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"spin\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 103)) ;; pointer 0, length 103
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $n i64)
    (loop $again
      (br_if $again (i64.lt_u (local.tee $n (i64.add (local.get $n) (i64.const 1))) (i64.const 10000000000))))
    (i32.const 0)))
