;; Fills its memory from a data segment, which has to be passive for that.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"memory-init\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 69)) ;; pointer 0, length 69
  (data $segment "x")
  (func (memory.init $segment (i32.const 0) (i32.const 0) (i32.const 1)))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
