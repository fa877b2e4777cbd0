;; Refuses any configuration that is not the word "good".
(module
  (import "wp1" "config" (func $config (param i32 i32) (result i32)))
  (import "wp1" "fail" (func $fail (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"configure-refuse\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")
  (data (i32.const 1024) "config is not good")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 115)) ;; pointer 0, length 115
  (func (export "wp_configure") (result i32)
    (if (i32.eq (call $config (i32.const 2048) (i32.const 64)) (i32.const 4))
      (then (if (i32.eq (i32.load (i32.const 2048)) (i32.const 0x646f6f67)) (then (return (i32.const 0))))))
    (call $fail (i32.const 1024) (i32.const 18))
    (i32.const -4))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (i32.const 0)))
