;; Imports a function that no host has.
(module
  (import "wp1" "make_coffee" (func (param i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"unknown-import\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 113)) ;; pointer 0, length 113
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (i32.const 0)))
