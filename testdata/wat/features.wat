;; Fails with the features that the host says it has: a letter for each of cgroup v2,
;; cgroup files, update and kv, and - for one that it lacks.
(module
  (import "wp1" "feature" (func $feature (param i32) (result i32)))
  (import "wp1" "fail" (func $fail (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"features\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\"]}")
  (data (i32.const 1024) "-cfuk")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 87)) ;; pointer 0, length 87
  ;; $note writes the letter of a feature, or -.
  (func $note (param $n i32)
    (i32.store8 offset=2048 (local.get $n)
      (i32.load8_u offset=1024 (i32.mul (local.get $n) (call $feature (local.get $n))))))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (call $note (i32.const 1))
    (call $note (i32.const 2))
    (call $note (i32.const 3))
    (call $note (i32.const 4))
    (call $fail (i32.const 2049) (i32.const 4))
    (i32.const -4)))
