;; Has no wp_manifest.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"missing-manifest\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32) (i32.const 0)))
