;; Tick: reads four files of the cgroup of every container of the node, 128 containers in one call
;; of the host. It fails if a call does.
(module
  (import "wp1" "container_list" (func $container_list (param i32 i32 i32) (result i32)))
  (import "wp1" "cgroup_read" (func $cgroup_read (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 20)
  (data (i32.const 0) "{\"name\":\"reader\",\"version\":\"1.0.0\",\"hooks\":[\"Tick\"],\"tick_ms\":1000,\"capabilities\":[\"store.read\",\"cgroup.read\"]}")
  (data (i32.const 1024) "\04\00\00\00\08\00\00\00cpu.stat\0e\00\00\00memory.current\0c\00\00\00pids.current\07\00\00\00cpu.max")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 111)) ;; pointer 0, length 111
  (func (export "wp_hook") (param $hook i32) (result i32)
    (local $n i32) (local $at i32) (local $r i32) (local $len i32)
    ;; 3 is the node
    (local.set $n (call $container_list (i32.const 3) (i32.const 4096) (i32.const 16384)))
    (if (i32.lt_s (local.get $n) (i32.const 0)) (then (return (local.get $n))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_s (local.get $at) (local.get $n)))
        (local.set $len (i32.sub (local.get $n) (local.get $at)))
        (if (i32.gt_s (local.get $len) (i32.const 512)) (then (local.set $len (i32.const 512))))
        (local.set $r (call $cgroup_read (i32.add (i32.const 4096) (local.get $at)) (local.get $len)
          (i32.const 1024) (i32.const 61) (i32.const 65536) (i32.const 1048576)))
        (if (i32.lt_s (local.get $r) (i32.const 0)) (then (return (local.get $r))))
        (local.set $at (i32.add (local.get $at) (local.get $len)))
        (br $next)))
    (i32.const 0)))
