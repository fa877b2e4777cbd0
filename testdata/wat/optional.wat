;; PreCreateContainer: calls two host functions that no host has, and sets the
;; annotation example.com/optional to "yes" if both answer UNSUPPORTED. Its manifest,
;; which says that it can do without them, has to be put into a custom section.
(module
  (import "wp1" "map_set" (func $map_set (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wp1" "make_coffee" (func $make_coffee (param i32 f64) (result i32)))
  (import "wp1" "count_beans" (func $count_beans (result i64)))
  (import "wp1" "clean_up" (func $clean_up (param i64)))
  (memory (export "memory") 1)
  (data (i32.const 1024) "example.com/optionalyes")

  (func (export "wp_abi") (result i32) (i32.const 0x10000))
  (func $wp_hook (export "wp_hook") (param $hook i32) (result i32)
    (call $clean_up (i64.const 1))
    (if (i32.ne (call $make_coffee (i32.const 1) (f64.const 2)) (i32.const -2)) (then (return (i32.const -1))))
    (if (i64.ne (call $count_beans) (i64.const -2)) (then (return (i32.const -1))))
    ;; container.annotations["example.com/optional"]
    (call $map_set (i32.const 2) (i32.const 10) (i32.const 1024) (i32.const 20) (i32.const 1044) (i32.const 3))))
