;; Aborts with a message, as SDKs do when the plugin's code panics.
(module
  (import "wp1" "abort" (func $abort (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"abort\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")
  (data (i32.const 1024) "index 7 out of range\n\1b[31m it")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 104)) ;; pointer 0, length 104
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (call $abort (i32.const 1024) (i32.const 28))
    (i32.const 0)))
