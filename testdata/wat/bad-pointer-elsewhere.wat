;; As bad-pointer-everywhere, for the host functions of lists, values and metrics. Those
;; from "i" on need a grant.
(module
  (import "wp1" "get" (func $get (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "list_dump" (func $list_dump (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "cri_raw" (func $cri_raw (param i32 i32) (result i32)))
  (import "wp1" "cgroup_get" (func $cgroup_get (param i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "pod_list" (func $pod_list (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "list_set" (func $list_set (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "list_add" (func $list_add (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "list_del" (func $list_del (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "metric" (func $metric (param i32 i32 i32 i64) (result i32)))
  (import "wp1" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "kv_set" (func $kv_set (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "kv_del" (func $kv_del (param i32 i32) (result i32)))
  (import "wp1" "random" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"bad-pointer-elsewhere\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\"],\"capabilities\":[\"annotations\",\"store.read\",\"metric\",\"mounts\",\"args\",\"cri.raw\",\"cgroup.read\",\"state.kv\"]}")
  (data (i32.const 1024) "example.com/wellyes")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 204)) ;; pointer 0, length 204
  ;; pod.annotations["example.com/well"] = "yes"
  (func $well (result i32)
    (call $map_set (i32.const 1) (i32.const 10) (i32.const 1024) (i32.const 16) (i32.const 1040) (i32.const 3)))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $which i32)
    (local $at i32)
    (local $length i32)
    (if (i32.eq (local.get $hook) (i32.const 1)) (then (return (call $well))))
    ;; the name of the container: a letter that says which function, and one that says what is wrong
    (drop (call $get (i32.const 2) (i32.const 2) (i32.const 2048) (i32.const 8)))
    (local.set $which (i32.sub (i32.load8_u (i32.const 2048)) (i32.const 0x61)))
    (local.set $at (i32.const 0x7fffffff))
    (local.set $length (i32.const 1))
    (if (i32.eq (i32.load8_u (i32.const 2049)) (i32.const 0x6c)) ;; "l", its length
      (then (local.set $at (i32.const 65535)) (local.set $length (i32.const -1))))
    (if (i32.eq (local.get $which) (i32.const 0)) ;; "a"
      (then (drop (call $list_dump (i32.const 2) (i32.const 13) (local.get $at) (local.get $length)))))
    (if (i32.eq (local.get $which) (i32.const 1)) ;; "b"
      (then (drop (call $pod_list (local.get $at) (local.get $length) (i32.const 0) (i32.const 0)))))
    (if (i32.eq (local.get $which) (i32.const 2)) ;; "c"
      (then (drop (call $pod_list (i32.const 0) (i32.const 0) (local.get $at) (local.get $length)))))
    (if (i32.eq (local.get $which) (i32.const 3)) ;; "d"
      (then (drop (call $list_set (i32.const 2) (i32.const 14) (local.get $at) (local.get $length)))))
    (if (i32.eq (local.get $which) (i32.const 4)) ;; "e"
      (then (drop (call $list_add (i32.const 2) (i32.const 16) (local.get $at) (local.get $length)))))
    (if (i32.eq (local.get $which) (i32.const 5)) ;; "f"
      (then (drop (call $list_del (i32.const 2) (i32.const 16) (local.get $at) (local.get $length)))))
    (if (i32.eq (local.get $which) (i32.const 6)) ;; "g"
      (then (drop (call $metric (i32.const 0) (local.get $at) (local.get $length) (i64.const 1)))))
    (if (i32.eq (local.get $which) (i32.const 7)) ;; "h"
      (then (drop (call $random (local.get $at) (local.get $length)))))
    (if (i32.eq (local.get $which) (i32.const 8)) ;; "i"
      (then (drop (call $cri_raw (local.get $at) (local.get $length)))))
    (if (i32.eq (local.get $which) (i32.const 9)) ;; "j"
      (then (drop (call $cgroup_get (i32.const 2) (local.get $at) (local.get $length) (i32.const 0) (i32.const 0)))))
    (if (i32.eq (local.get $which) (i32.const 10)) ;; "k"
      (then (drop (call $cgroup_get (i32.const 2) (i32.const 1) (i32.const 1) (local.get $at) (local.get $length)))))
    (if (i32.eq (local.get $which) (i32.const 11)) ;; "l"
      (then (drop (call $kv_get (local.get $at) (local.get $length) (i32.const 0) (i32.const 0)))))
    (if (i32.eq (local.get $which) (i32.const 12)) ;; "m"
      (then (drop (call $kv_get (i32.const 0) (i32.const 1) (local.get $at) (local.get $length)))))
    (if (i32.eq (local.get $which) (i32.const 13)) ;; "n"
      (then (drop (call $kv_set (local.get $at) (local.get $length) (i32.const 0) (i32.const 0)))))
    (if (i32.eq (local.get $which) (i32.const 14)) ;; "o"
      (then (drop (call $kv_set (i32.const 0) (i32.const 1) (local.get $at) (local.get $length)))))
    (if (i32.eq (local.get $which) (i32.const 15)) ;; "p"
      (then (drop (call $kv_del (local.get $at) (local.get $length)))))
    (i32.const 0)))
