;; The program of README.md, in WebAssembly's text format. Memory: 0 the manifest, 4096 the
;; arguments, 4160 a line, 65536 the buffer, 131072 the script, 524288 what is repeated.
(module
  (import "wp1" "get" (func $get (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "get_i64" (func $get_i64 (param i32 i32 i32) (result i32)))
  (import "wp1" "map_get" (func $map_get (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_dump" (func $map_dump (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "list_dump" (func $list_dump (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "cri_raw" (func $cri_raw (param i32 i32) (result i32)))
  (import "wp1" "cgroup_get" (func $cgroup_get (param i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "pod_find" (func $pod_find (param i32 i32 i32) (result i32)))
  (import "wp1" "pod_list" (func $pod_list (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "container_list" (func $container_list (param i32 i32 i32) (result i32)))
  (import "wp1" "set_i64" (func $set_i64 (param i32 i32 i64) (result i32)))
  (import "wp1" "set_bytes" (func $set_bytes (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_del" (func $map_del (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "list_set" (func $list_set (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "list_add" (func $list_add (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "list_del" (func $list_del (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "cgroup_set" (func $cgroup_set (param i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "reject" (func $reject (param i32 i32 i32) (result i32)))
  (import "wp1" "fail" (func $fail (param i32 i32)))
  (import "wp1" "abort" (func $abort (param i32 i32)))
  (import "wp1" "config" (func $config (param i32 i32) (result i32)))
  (import "wp1" "log" (func $log (param i32 i32 i32)))
  (import "wp1" "log_level" (func $log_level (result i32)))
  (import "wp1" "metric" (func $metric (param i32 i32 i32 i64) (result i32)))
  (import "wp1" "kv_get" (func $kv_get (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "kv_set" (func $kv_set (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "kv_del" (func $kv_del (param i32 i32) (result i32)))
  (import "wp1" "now" (func $now (result i64)))
  (import "wp1" "random" (func $random (param i32 i32) (result i32)))
  (import "wp1" "feature" (func $feature (param i32) (result i32)))
  (import "wp1" "cgroup_read" (func $cgroup_read (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "withdraw" (func $withdraw (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "conflict" (func $conflict (param i32 i32) (result i32)))
  (memory (export "memory") 32)
  (data (i32.const 0) "{\"name\":\"conformance\",\"version\":\"1.0.0\",\"hooks\":[\"PreRunPodSandbox\",\"PostRunPodSandbox\",\"PreCreateContainer\",\"PostCreateContainer\",\"PreStartContainer\",\"PostStartContainer\",\"PreUpdateContainerResources\",\"PostUpdateContainerResources\",\"PostStopContainer\",\"PostRemoveContainer\",\"PostStopPodSandbox\",\"PreStopContainer\",\"PreRemoveContainer\",\"PreStopPodSandbox\",\"PreRemovePodSandbox\",\"PostRemovePodSandbox\",\"PreUpdatePodSandboxResources\",\"PostUpdatePodSandboxResources\",\"PreExec\",\"PostExec\",\"PreExecSync\",\"PostExecSync\",\"PreAttach\",\"PostAttach\",\"PrePortForward\",\"PostPortForward\",\"PreCheckpointContainer\",\"PostCheckpointContainer\",\"PreCheckpointPod\",\"PostCheckpointPod\",\"PreRestorePod\",\"PostRestorePod\",\"PrePullImage\",\"PostPullImage\",\"PreRemoveImage\",\"PostRemoveImage\",\"Synchronize\",\"Tick\"],\"tick_ms\":1000,\"capabilities\":[\"store.read\",\"resources\",\"unified\",\"annotations\",\"labels\",\"cgroup.write\",\"metric\",\"env\",\"cgroup.read\",\"cgroup.parent\",\"runtime_handler\",\"image\",\"args\",\"mounts\",\"devices\",\"cdi\",\"user\",\"update.others\",\"state.kv\",\"cri.raw\",\"credentials\",\"pod.limits\",\"store.read.all\"]}")
  (global $pc (mut i32) (i32.const 131072)) ;; the next byte of the script
  (global $arg (mut i32) (i32.const 4096)) ;; the next argument, 8 bytes each
  (global $text (mut i32) (i32.const 524288)) ;; where the next repeated text goes
  (global $shown (mut i32) (i32.const 0)) ;; how much of the buffer is shown
  (global $always (mut i32) (i32.const 0)) ;; whether that is so whatever the result
  (global $line (mut i32) (i32.const 4160)) ;; where the line goes on

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 1081)) ;; pointer 0, length 1081

  ;; The value of a digit that is one of 0-9a-f.
  (func $digit (param $c i32) (result i32)
    (if (result i32) (i32.lt_u (local.get $c) (i32.const 97))
      (then (i32.sub (local.get $c) (i32.const 48)))
      (else (i32.sub (local.get $c) (i32.const 87)))))

  ;; The configuration is a JSON string of digits, which are decoded in place.
  (func (export "wp_configure") (result i32)
    (local $from i32) (local $to i32) (local $end i32)
    (local.set $end (call $config (i32.const 131072) (i32.const 393216)))
    (if (i32.eqz (local.get $end)) (then (return (i32.const 0))))
    (local.set $end (i32.add (local.get $end) (i32.const 131071))) ;; the closing quote
    (local.set $from (i32.const 131073))
    (local.set $to (i32.const 131072))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
        (i32.store8 (local.get $to) (i32.or
          (i32.shl (call $digit (i32.load8_u (local.get $from))) (i32.const 4))
          (call $digit (i32.load8_u offset=1 (local.get $from)))))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (local.set $from (i32.add (local.get $from) (i32.const 2)))
        (br $next)))
    (call $run))

  (func (export "wp_hook") (param $hook i32) (result i32)
    (call $number (i64.extend_i32_s (local.get $hook)))
    (call $say)
    (call $run))

  (func $byte (result i32)
    (i32.load8_u (global.get $pc))
    (global.set $pc (i32.add (global.get $pc) (i32.const 1))))

  (func $word (result i32)
    (i32.load align=1 (global.get $pc))
    (global.set $pc (i32.add (global.get $pc) (i32.const 4))))

  (func $push (param $v i64)
    (i64.store (global.get $arg) (local.get $v))
    (global.set $arg (i32.add (global.get $arg) (i32.const 8))))

  (func $pair (param $ptr i32) (param $len i32)
    (call $push (i64.extend_i32_u (local.get $ptr)))
    (call $push (i64.extend_i32_u (local.get $len))))

  ;; Reads one argument of the script and puts what the function gets of it to the others.
  (func $read
    (local $n i32)
    (block $out (block $buffer (block $repeat (block $bytes (block $value
      (br_table $value $bytes $repeat $buffer $out (call $byte)))
      ;; 0: a number
      (call $push (i64.load align=1 (global.get $pc)))
      (global.set $pc (i32.add (global.get $pc) (i32.const 8)))
      (return))
      ;; 1: a text
      (local.set $n (call $word))
      (call $pair (global.get $pc) (local.get $n))
      (global.set $pc (i32.add (global.get $pc) (local.get $n)))
      (return))
      ;; 2: one byte, many times
      (local.set $n (call $word))
      (memory.fill (global.get $text) (call $byte) (local.get $n))
      (call $pair (global.get $text) (local.get $n))
      (global.set $text (i32.add (global.get $text) (local.get $n)))
      (return))
      ;; 3: a buffer
      (global.set $shown (call $word))
      (memory.fill (i32.const 65536) (i32.const 0xaa) (global.get $shown))
      (call $pair (i32.const 65536) (global.get $shown))
      (return))
    ;; 4: a place that is shown whatever the result
    (global.set $shown (call $word))
    (global.set $always (i32.const 1))
    (memory.fill (i32.const 65536) (i32.const 0xaa) (global.get $shown))
    (call $push (i64.const 65536)))

  ;; Carries the script out up to its next end, and returns what that says.
  (func $run (result i32)
    (local $op i32) (local $n i32)
    (loop $next
      (local.set $op (call $byte))
      (if (i32.eq (local.get $op) (i32.const 0xff)) (then (return (call $word))))
      (local.set $n (call $byte))
      (global.set $arg (i32.const 4096))
      (global.set $text (i32.const 524288))
      (global.set $shown (i32.const 0))
      (global.set $always (i32.const 0))
      (block $read_all
        (loop $more
          (br_if $read_all (i32.eqz (local.get $n)))
          (call $read)
          (local.set $n (i32.sub (local.get $n) (i32.const 1)))
          (br $more)))
      (call $call (local.get $op))
      (br $next))
    (unreachable))

  (func $a (param $i i32) (result i32)
    (i32.load (i32.add (i32.const 4096) (i32.shl (local.get $i) (i32.const 3)))))
  (func $long (param $i i32) (result i64)
    (i64.load (i32.add (i32.const 4096) (i32.shl (local.get $i) (i32.const 3)))))

  (func $put (param $c i32)
    (i32.store8 (global.get $line) (local.get $c))
    (global.set $line (i32.add (global.get $line) (i32.const 1))))

  (func $say
    (call $log (i32.const 1) (i32.const 4160) (i32.sub (global.get $line) (i32.const 4160)))
    (global.set $line (i32.const 4160)))

  (func $number (param $v i64)
    (if (i64.lt_s (local.get $v) (i64.const 0))
      (then (call $put (i32.const 45)) (local.set $v (i64.sub (i64.const 0) (local.get $v)))))
    (if (i64.ge_u (local.get $v) (i64.const 10))
      (then (call $number (i64.div_u (local.get $v) (i64.const 10)))))
    (call $put (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $v) (i64.const 10))))))

  (func $hex (param $v i32)
    (call $put (select
      (i32.add (local.get $v) (i32.const 48)) (i32.add (local.get $v) (i32.const 87))
      (i32.lt_u (local.get $v) (i32.const 10)))))

  ;; Says a result, and what is in the buffer.
  (func $tell (param $result i64)
    (local $i i32)
    (call $number (local.get $result))
    (if (i32.and (i32.eqz (global.get $always)) (i64.lt_s (local.get $result) (i64.extend_i32_u (global.get $shown))))
      (then (global.set $shown (select (i32.wrap_i64 (local.get $result)) (i32.const 0) (i64.gt_s (local.get $result) (i64.const 0))))))
    (if (global.get $shown) (then (call $put (i32.const 32))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $i) (global.get $shown)))
        (call $hex (i32.shr_u (i32.load8_u offset=65536 (local.get $i)) (i32.const 4)))
        (call $hex (i32.and (i32.load8_u offset=65536 (local.get $i)) (i32.const 15)))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next)))
    (call $say))

  (func $call (param $op i32)
    (block $do_conflict (block $do_withdraw (block $do_cgroup_read (block $do_feature (block $do_random (block $do_now (block $do_kv_del (block $do_kv_set (block $do_kv_get (block $do_metric (block $do_log_level (block $do_log (block $do_config (block $do_abort (block $do_fail (block $do_reject (block $do_cgroup_set (block $do_list_del (block $do_list_add (block $do_list_set (block $do_map_del (block $do_map_set (block $do_set_bytes (block $do_set_i64 (block $do_container_list (block $do_pod_list (block $do_pod_find (block $do_cgroup_get (block $do_cri_raw (block $do_list_dump (block $do_map_dump (block $do_map_get (block $do_get_i64 (block $do_get 
      (br_table $do_get $do_get_i64 $do_map_get $do_map_dump $do_list_dump $do_cri_raw $do_cgroup_get $do_pod_find $do_pod_list $do_container_list $do_set_i64 $do_set_bytes $do_map_set $do_map_del $do_list_set $do_list_add $do_list_del $do_cgroup_set $do_reject $do_fail $do_abort $do_config $do_log $do_log_level $do_metric $do_kv_get $do_kv_set $do_kv_del $do_now $do_random $do_feature $do_cgroup_read $do_withdraw $do_conflict (local.get $op)))
    (call $tell (i64.extend_i32_s (call $get (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $get_i64 (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2))))) (return))
    (call $tell (i64.extend_i32_s (call $map_get (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3)) (call $a (i32.const 4)) (call $a (i32.const 5))))) (return))
    (call $tell (i64.extend_i32_s (call $map_dump (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $list_dump (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $cri_raw (call $a (i32.const 0)) (call $a (i32.const 1))))) (return))
    (call $tell (i64.extend_i32_s (call $cgroup_get (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3)) (call $a (i32.const 4))))) (return))
    (call $tell (i64.extend_i32_s (call $pod_find (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2))))) (return))
    (call $tell (i64.extend_i32_s (call $pod_list (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $container_list (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2))))) (return))
    (call $tell (i64.extend_i32_s (call $set_i64 (call $a (i32.const 0)) (call $a (i32.const 1)) (call $long (i32.const 2))))) (return))
    (call $tell (i64.extend_i32_s (call $set_bytes (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $map_set (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3)) (call $a (i32.const 4)) (call $a (i32.const 5))))) (return))
    (call $tell (i64.extend_i32_s (call $map_del (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $list_set (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $list_add (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $list_del (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $cgroup_set (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3)) (call $a (i32.const 4))))) (return))
    (call $tell (i64.extend_i32_s (call $reject (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2))))) (return))
    (call $fail (call $a (i32.const 0)) (call $a (i32.const 1))) (return))
    (call $abort (call $a (i32.const 0)) (call $a (i32.const 1))) (return))
    (call $tell (i64.extend_i32_s (call $config (call $a (i32.const 0)) (call $a (i32.const 1))))) (return))
    (call $log (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2))) (return))
    (call $tell (i64.extend_i32_s (call $log_level))) (return))
    (call $tell (i64.extend_i32_s (call $metric (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $long (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $kv_get (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $kv_set (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $kv_del (call $a (i32.const 0)) (call $a (i32.const 1))))) (return))
    (call $tell (call $now)) (return))
    (call $tell (i64.extend_i32_s (call $random (call $a (i32.const 0)) (call $a (i32.const 1))))) (return))
    (call $tell (i64.extend_i32_s (call $feature (call $a (i32.const 0))))) (return))
    (call $tell (i64.extend_i32_s (call $cgroup_read (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3)) (call $a (i32.const 4)) (call $a (i32.const 5))))) (return))
    (call $tell (i64.extend_i32_s (call $withdraw (call $a (i32.const 0)) (call $a (i32.const 1)) (call $a (i32.const 2)) (call $a (i32.const 3))))) (return))
    (call $tell (i64.extend_i32_s (call $conflict (call $a (i32.const 0)) (call $a (i32.const 1)))))))
