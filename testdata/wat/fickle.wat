;; Does what the annotation example.com/do of the container says: "trap", "loop",
;; "exit" or "fail". Otherwise it counts the calls that it remembers, the last digit
;; of which it writes to the annotation example.com/count.
(module
  (import "wp1" "map_get" (func $map_get (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "fail" (func $fail (param i32 i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"fickle\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"annotations\"]}")
  (data (i32.const 1024) "example.com/doexample.com/countasked to")
  (global $calls (mut i32) (i32.const 0))

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 97)) ;; pointer 0, length 97
  (func $count (result i32)
    (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
    (i32.store8 (i32.const 2048) (i32.add (i32.const 0x30) (i32.rem_u (global.get $calls) (i32.const 10))))
    ;; container.annotations["example.com/count"]
    (call $map_set (i32.const 2) (i32.const 10) (i32.const 1038) (i32.const 17) (i32.const 2048) (i32.const 1)))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $word i32)
    ;; container.annotations["example.com/do"]
    (if (i32.eq (call $map_get (i32.const 2) (i32.const 10) (i32.const 1024) (i32.const 14) (i32.const 2048) (i32.const 64)) (i32.const 4))
      (then (local.set $word (i32.load (i32.const 2048)))))
    (if (i32.eq (local.get $word) (i32.const 0x70617274)) (then unreachable)) ;; "trap"
    (if (i32.eq (local.get $word) (i32.const 0x706f6f6c)) (then (loop $again (br $again)))) ;; "loop"
    (if (i32.eq (local.get $word) (i32.const 0x74697865)) (then (call $proc_exit (i32.const 1)))) ;; "exit"
    (if (i32.eq (local.get $word) (i32.const 0x6c696166)) ;; "fail"
      (then (call $fail (i32.const 1055) (i32.const 8)) (return (i32.const -4))))
    (call $count)))
