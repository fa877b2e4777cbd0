;; Reads fields 0 to 79 of the event, pod, container and node, each as a string, as a number and as
;; a map, and writes the FNV-1a hash of all results, as 8 hexadecimal digits, to the annotation
;; example.com/read.
(module
  (import "wp1" "get" (func $get (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "get_i64" (func $get_i64 (param i32 i32 i32) (result i32)))
  (import "wp1" "map_dump" (func $map_dump (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"everything\",\"version\":\"1.0.0\",\"hooks\":[\"PreCreateContainer\"],\"capabilities\":[\"annotations\",\"env\"]}")
  (data (i32.const 1024) "example.com/read0123456789abcdef")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 107)) ;; pointer 0, length 107
  (global $sum (mut i32) (i32.const 0))
  ;; byte adds one byte to the hash.
  (func $byte (param $b i32)
    (global.set $sum (i32.mul (i32.xor (global.get $sum) (local.get $b)) (i32.const 0x01000193))))
  ;; result adds a result and n bytes of the buffer, none if n is negative.
  (func $result (param $result i32) (param $n i32)
    (local $i i32)
    (call $byte (i32.and (local.get $result) (i32.const 0xff)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_s (local.get $i) (local.get $n)))
        (call $byte (i32.load8_u (i32.add (i32.const 4096) (local.get $i))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next))))
  ;; hex writes the hash.
  (func $hex
    (local $i i32)
    (loop $next
      (i32.store8 (i32.add (i32.const 2048) (local.get $i))
        (i32.load8_u (i32.add (i32.const 1040)
          (i32.and (i32.shr_u (global.get $sum) (i32.sub (i32.const 28) (i32.mul (local.get $i) (i32.const 4)))) (i32.const 15)))))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 8)))))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (local $object i32) (local $field i32) (local $r i32)
    (global.set $sum (i32.const 0x811c9dc5))
    (loop $objects
      (local.set $field (i32.const 0))
      (loop $fields
        (local.set $r (call $get (local.get $object) (local.get $field) (i32.const 4096) (i32.const 32768)))
        (call $result (local.get $r) (local.get $r))
        ;; 0 is success, and 8 bytes
        (local.set $r (call $get_i64 (local.get $object) (local.get $field) (i32.const 4096)))
        (call $result (local.get $r) (i32.shl (i32.eqz (local.get $r)) (i32.const 3)))
        (local.set $r (call $map_dump (local.get $object) (local.get $field) (i32.const 4096) (i32.const 32768)))
        (call $result (local.get $r) (local.get $r))
        (br_if $fields (i32.lt_u (local.tee $field (i32.add (local.get $field) (i32.const 1))) (i32.const 80))))
      (br_if $objects (i32.lt_u (local.tee $object (i32.add (local.get $object) (i32.const 1))) (i32.const 4))))
    (call $hex)
    ;; container.annotations["example.com/read"]
    (call $map_set (i32.const 2) (i32.const 10)
      (i32.const 1024) (i32.const 16) (i32.const 2048) (i32.const 8))))
