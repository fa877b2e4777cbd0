;; Wants a hook that does not exist.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"manifest-unknown-hook\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\",\"PreLunch\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 92)) ;; pointer 0, length 92
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (i32.const 0)))
