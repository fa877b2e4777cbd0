;; Logs a line and loops for ever in _initialize.
(module
  (import "wp1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"initialize-loop\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")
  (data (i32.const 1024) "looping")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 114)) ;; pointer 0, length 114
  (func (export "_initialize")
    (call $log (i32.const 1) (i32.const 1024) (i32.const 7))
    (loop $again (br $again)))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (i32.const 0)))
