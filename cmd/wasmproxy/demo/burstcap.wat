;; burst-cap: every container's CPU burst is 10 ms. A whole plugin by hand, to
;; show what the border between the proxy and a plugin is. ABI.md explains it.
(module
  (import "wp1" "cgroup_set" (func $cgroup_set (param i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "fail" (func $fail (param i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "cpu.max.burst")
  (data (i32.const 16) "10000")
  (data (i32.const 32) "cpu.max.burst was not accepted")
  (data (i32.const 64) "{\"name\":\"burst-cap\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"cgroup.write\"]}")
  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64)
    (i64.or (i64.shl (i64.const 64) (i64.const 32)) (i64.const 101)))
  (func (export "wp_hook") (param $hook i32) (result i32)
    (local $error i32)
    (local.set $error ;; object 2 is the container of the event
      (call $cgroup_set (i32.const 2) (i32.const 0) (i32.const 13) (i32.const 16) (i32.const 5)))
    (if (local.get $error) (then (call $fail (i32.const 32) (i32.const 30))))
    (local.get $error)))
