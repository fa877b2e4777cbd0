;; Begins with 2 GiB of memory.
(module
  (memory (export "memory") 32768)
  (data (i32.const 0) "{\"name\":\"memory-of-2-gib\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 73)) ;; pointer 0, length 73
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
