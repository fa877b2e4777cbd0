;; Wants every hook and does nothing.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"noop\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PostRunPodSandbox\",\"PreCreateContainer\",\"PostCreateContainer\",\"PreStartContainer\",\"PostStartContainer\",\"PreUpdateContainerResources\",\"PostUpdateContainerResources\",\"PostStopContainer\",\"PostRemoveContainer\",\"PostStopPodSandbox\"]}")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 290)) ;; pointer 0, length 290
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (i32.const 0)))
