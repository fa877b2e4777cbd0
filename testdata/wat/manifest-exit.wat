;; Exits where it is asked for its manifest.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"manifest-exit\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (call $proc_exit (i32.const 0)) (i64.const 0))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
