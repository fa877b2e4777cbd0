;; Returns a manifest that is not JSON.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "name = \"toml\"")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 13)) ;; pointer 0, length 13
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (i32.const 0)))
