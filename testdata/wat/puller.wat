;; PrePullImage: makes mirror/web:2 of every image. PostPullImage: nothing. PreRemoveImage: refuses.
(module
  (import "wp1" "set_bytes" (func $set_bytes (param i32 i32 i32 i32) (result i32)))
  (import "wp1" "reject" (func $reject (param i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "{\"name\":\"puller\",\"version\":\"1.0.0\",\"hooks\":[\"PrePullImage\",\"PostPullImage\",\"PreRemoveImage\"],\"capabilities\":[\"image\"]}")
  (data (i32.const 512) "mirror/web:2kept")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func (export "wp_manifest") (result i64) (i64.const 118)) ;; pointer 0, length 118
  (func (export "wp_hook") (param $hook i32) (result i32)
    ;; 33 is PrePullImage, field 4 of object 0 event.image
    (if (i32.eq (local.get $hook) (i32.const 33))
      (then (return (call $set_bytes (i32.const 0) (i32.const 4) (i32.const 512) (i32.const 12)))))
    ;; 35 is PreRemoveImage
    (if (i32.eq (local.get $hook) (i32.const 35))
      (then
        (drop (call $reject (i32.const 0) (i32.const 524) (i32.const 4)))
        (return (i32.const 1))))
    (i32.const 0)))
