;; Hands a bad pointer ("p"), or one of 4 GiB ("l"), to the host function that the first letter of the
;; container's name says, from "a" on. In PreRunPodSandbox it is good.
(module
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "get" (func $get (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "get_i64" (func $get_i64 (param i32 i32 i32) (result i32)))
  (import "wp1" "map_get" (func $map_get (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_dump" (func $map_dump (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "pod_find" (func $pod_find (param i32 i32 i32) (result i32)))
  (import "wp1" "container_list" (func $container_list (param i32 i32 i32) (result i32)))
  (import "wp1" "set_bytes" (func $set_bytes (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_del" (func $map_del (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "cgroup_set" (func $cgroup_set (param i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "reject" (func $reject (param i32 i32 i32) (result i32)))
  (import "wp1" "fail" (func $fail (param i32 i32)))
  (import "wp1" "abort" (func $abort (param i32 i32)))
  (import "wp1" "config" (func $config (param i32 i32) (result i32)))
  (import "wp1" "log" (func $log (param i32 i32 i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"bad-pointer-everywhere\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PreCreateContainer\"],\"capabilities\":[\"store.read\",\"resources\",\"annotations\",\"cgroup.write\"]}")
  (data (i32.const 1024) "example.com/wellyes")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 172)) ;; pointer 0, length 172
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
    (block $none
      (block $f17
        (block $f16
          (block $f15
            (block $f14
              (block $f13
                (block $f12
                  (block $f11
                    (block $f10
                      (block $f9
                        (block $f8
                          (block $f7
                            (block $f6
                              (block $f5
                                (block $f4
                                  (block $f3
                                    (block $f2
                                      (block $f1
                                        (block $f0
                                          (br_table $f0 $f1 $f2 $f3 $f4 $f5 $f6 $f7 $f8 $f9 $f10 $f11 $f12 $f13 $f14 $f15 $f16 $f17 $none (local.get $which)))
                                        (drop (call $get (i32.const 1) (i32.const 2) (local.get $at) (local.get $length)))
                                        (br $none))
                                      (drop (call $get_i64 (i32.const 2) (i32.const 40) (local.get $at)))
                                      (br $none))
                                    (drop (call $map_get (i32.const 2) (i32.const 10) (local.get $at) (local.get $length) (i32.const 0) (i32.const 0)))
                                    (br $none))
                                  (drop (call $map_get (i32.const 2) (i32.const 10) (i32.const 0) (i32.const 1) (local.get $at) (local.get $length)))
                                  (br $none))
                                (drop (call $map_dump (i32.const 2) (i32.const 10) (local.get $at) (local.get $length)))
                                (br $none))
                              (drop (call $pod_find (i32.const 2) (local.get $at) (local.get $length)))
                              (br $none))
                            (drop (call $container_list (i32.const 1) (local.get $at) (local.get $length)))
                            (br $none))
                          (drop (call $set_bytes (i32.const 2) (i32.const 2) (local.get $at) (local.get $length)))
                          (br $none))
                        (drop (call $map_set (i32.const 2) (i32.const 10) (local.get $at) (local.get $length) (i32.const 0) (i32.const 0)))
                        (br $none))
                      (drop (call $map_set (i32.const 2) (i32.const 10) (i32.const 0) (i32.const 1) (local.get $at) (local.get $length)))
                      (br $none))
                    (drop (call $map_del (i32.const 2) (i32.const 10) (local.get $at) (local.get $length)))
                    (br $none))
                  (drop (call $cgroup_set (i32.const 2) (local.get $at) (local.get $length) (i32.const 0) (i32.const 1)))
                  (br $none))
                (drop (call $cgroup_set (i32.const 2) (i32.const 0) (i32.const 1) (local.get $at) (local.get $length)))
                (br $none))
              (drop (call $reject (i32.const 9) (local.get $at) (local.get $length)))
              (br $none))
            (call $fail (local.get $at) (local.get $length))
            (br $none))
          (call $abort (local.get $at) (local.get $length))
          (br $none))
        (drop (call $config (local.get $at) (local.get $length)))
        (br $none))
      (call $log (i32.const 1) (local.get $at) (local.get $length))
      (br $none))
    (i32.const 0)))
