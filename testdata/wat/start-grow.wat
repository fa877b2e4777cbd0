;; Takes all the memory it may have in its start function, and traps.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"start-grow\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 68)) ;; pointer 0, length 68
  (func $boot
    (loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
    unreachable)
  (start $boot)
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
