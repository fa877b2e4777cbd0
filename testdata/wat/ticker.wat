;; Tick: gives every container of the node a CPU quota of 70000 and a cpu.max.burst of 30000.
(module
  (import "wp1" "pod_list" (func $pod_list (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "container_list" (func $container_list (param i32 i32 i32) (result i32)))
  (import "wp1" "set_i64" (func $set_i64 (param i32 i32 i64) (result i32)))
  (import "wp1" "cgroup_set" (func $cgroup_set (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"ticker\",\"version\":\"1.0.0\",\"hooks\":[\"Tick\"],\"tick_ms\":1000,\"capabilities\":[\"store.read\",\"resources\",\"cgroup.write\",\"update.others\"]}")
  (data (i32.const 512) "cpu.max.burst30000")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 140)) ;; pointer 0, length 140
  ;; give changes the containers whose handles are the n bytes at 16384.
  (func $give (param $n i32) (result i32)
    (local $at i32) (local $r i32)
    (block $done
      (loop $next
        (br_if $done (i32.ge_s (local.get $at) (local.get $n)))
        ;; 65 is resources.cpu_quota
        (local.set $r (call $set_i64 (i32.load (i32.add (i32.const 16384) (local.get $at))) (i32.const 65) (i64.const 70000)))
        (br_if $done (i32.lt_s (local.get $r) (i32.const 0)))
        ;; a node without cgroups answers an error, which does not matter
        (drop (call $cgroup_set (i32.load (i32.add (i32.const 16384) (local.get $at))) (i32.const 512) (i32.const 13) (i32.const 525) (i32.const 5)))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (br $next)))
    (local.get $r))
  (func (export "wp_hook") (param $hook i32) (result i32)
    (local $n i32) (local $at i32) (local $r i32)
    (local.set $n (call $pod_list (i32.const 0) (i32.const 0) (i32.const 1024) (i32.const 8192)))
    (if (i32.lt_s (local.get $n) (i32.const 0)) (then (return (local.get $n))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_s (local.get $at) (local.get $n)))
        (local.set $r (call $container_list (i32.load (i32.add (i32.const 1024) (local.get $at))) (i32.const 16384) (i32.const 8192)))
        (br_if $done (i32.lt_s (local.get $r) (i32.const 0)))
        (local.set $r (call $give (local.get $r)))
        (br_if $done (i32.lt_s (local.get $r) (i32.const 0)))
        (local.set $at (i32.add (local.get $at) (i32.const 4)))
        (br $next)))
    (select (local.get $r) (i32.const 0) (i32.lt_s (local.get $r) (i32.const 0)))))
