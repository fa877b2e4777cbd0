;; Sets an annotation whose key and value have 1 MiB each, again and again. In PreRunPodSandbox it is good.
(module
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 33)
  (data (i32.const 0) "{\"name\":\"largest-arguments\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\"],\"capabilities\":[\"annotations\"]}")
  (data (i32.const 1024) "example.com/wellyes")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 127)) ;; pointer 0, length 127
  ;; pod.annotations["example.com/well"] = "yes"
  (func $well (result i32)
    (call $map_set (i32.const 1) (i32.const 10) (i32.const 1024) (i32.const 16) (i32.const 1040) (i32.const 3)))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (if (i32.eq (local.get $hook) (i32.const 1)) (then (return (call $well))))
    (loop $again
      (drop (call $map_set (i32.const 2) (i32.const 10) (i32.const 0) (i32.const 0x100000) (i32.const 0x100000) (i32.const 0x100000)))
      (br $again))
    unreachable))
