;; Needs 1,000 pages (62.5 MiB) of memory to start with.
(module
  (memory (export "memory") 1000)
  (data (i32.const 0) "{\"name\":\"memory-hungry\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\",\"PostStopContainer\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 112)) ;; pointer 0, length 112
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (i32.const 0)))
