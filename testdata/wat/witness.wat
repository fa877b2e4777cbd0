;; Logs its config in each hook, beside which the host writes the hook's name and the pod's, and fails
;; in Synchronize if the config begins with "!".
(module
  (import "wp1" "config" (func $config (param i32 i32) (result i32)))
  (import "wp1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"witness\",\"version\":\"1.0.0\",\"hooks\":[\"Synchronize\",\"PreRunPodSandbox\",\"PostRunPodSandbox\",\"PreCreateContainer\",\"PostStopPodSandbox\",\"PostRemovePodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 164)) ;; pointer 0, length 164
  (func (export "wp_hook") (param $hook i32) (result i32)
    (local $n i32)
    (local.set $n (call $config (i32.const 1024) (i32.const 1024)))
    (call $log (i32.const 1) (i32.const 1024) (local.get $n))
    ;; Synchronize is 37; JSON puts the string into quotes; "!" is 33
    (if (i32.and (i32.eq (local.get $hook) (i32.const 37)) (i32.eq (i32.load8_u (i32.const 1025)) (i32.const 33)))
      (then (return (i32.const -4))))
    (i32.const 0)))
