package main

// The host functions, as they are.

//go:wasmimport wp1 get
func get(a, b, c, d int32) int32

//go:wasmimport wp1 get_i64
func getI64(a, b, c int32) int32

//go:wasmimport wp1 map_get
func mapGet(a, b, c, d, e, f int32) int32

//go:wasmimport wp1 map_dump
func mapDump(a, b, c, d int32) int32

//go:wasmimport wp1 list_dump
func listDump(a, b, c, d int32) int32

//go:wasmimport wp1 cri_raw
func criRaw(a, b int32) int32

//go:wasmimport wp1 cgroup_get
func cgroupGet(a, b, c, d, e int32) int32

//go:wasmimport wp1 pod_find
func podFind(a, b, c int32) int32

//go:wasmimport wp1 pod_list
func podList(a, b, c, d int32) int32

//go:wasmimport wp1 container_list
func containerList(a, b, c int32) int32

//go:wasmimport wp1 set_i64
func setI64(a, b int32, c int64) int32

//go:wasmimport wp1 set_bytes
func setBytes(a, b, c, d int32) int32

//go:wasmimport wp1 map_set
func mapSet(a, b, c, d, e, f int32) int32

//go:wasmimport wp1 map_del
func mapDel(a, b, c, d int32) int32

//go:wasmimport wp1 list_set
func listSet(a, b, c, d int32) int32

//go:wasmimport wp1 list_add
func listAdd(a, b, c, d int32) int32

//go:wasmimport wp1 list_del
func listDel(a, b, c, d int32) int32

//go:wasmimport wp1 cgroup_set
func cgroupSet(a, b, c, d, e int32) int32

//go:wasmimport wp1 reject
func reject(a, b, c int32) int32

//go:wasmimport wp1 fail
func fail(a, b int32)

//go:wasmimport wp1 abort
func abort(a, b int32)

//go:wasmimport wp1 config
func config(a, b int32) int32

//go:wasmimport wp1 log
func log(a, b, c int32)

//go:wasmimport wp1 log_level
func logLevel() int32

//go:wasmimport wp1 metric
func metric(a, b, c int32, d int64) int32

//go:wasmimport wp1 kv_get
func kvGet(a, b, c, d int32) int32

//go:wasmimport wp1 kv_set
func kvSet(a, b, c, d int32) int32

//go:wasmimport wp1 kv_del
func kvDel(a, b int32) int32

//go:wasmimport wp1 now
func now() int64

//go:wasmimport wp1 random
func random(a, b int32) int32

//go:wasmimport wp1 feature
func feature(a int32) int32

//go:wasmimport wp1 cgroup_read
func cgroupRead(a, b, c, d, e, f int32) int32

//go:wasmimport wp1 withdraw
func withdraw(a, b, c, d int32) int32

//go:wasmimport wp1 conflict
func conflict(a, b int32) int32
