;; Says that its manifest has 4 GiB.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"manifest-4-gib\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 0xffffffff))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
