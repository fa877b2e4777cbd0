/*
 * wasmproxy.h: for authors of wasmproxy plugins in C and C++. One file, no libc:
 *
 *     clang --target=wasm32 -mbulk-memory -Oz -nostdlib -ffreestanding \
 *         -Wl,--no-entry -Wl,--strip-all -o 10-plugin.wasm plugin.c
 *
 * A plugin names itself with WP_PLUGIN, once, and defines wp_hook:
 *
 *     WP_PLUGIN({"name": "hello", "version": "1.0.0", WP_SDK, "hooks": ["PostStartContainer"]})
 *
 *     int32_t wp_hook(int32_t hook) {
 *         wp_log(WP_LOG_INFO, wp_get_text(WP_OBJECT_CONTAINER, WP_CONTAINER_NAME));
 *         return wp_result();
 *     }
 *
 * The first part of the file is generated: numbers, and the host functions as they
 * are. The second is what makes them pleasant: texts with a length, memory that need
 * not be freed, and setters whose refusal is not forgotten. ABI.md of package abi says
 * what each hook, field and error means.
 */
#ifndef WASMPROXY_H
#define WASMPROXY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Generated from package abi: begin. Do not edit. */
#define WP_ABI_VERSION 65536 /* 1.0 */

/* Hooks. */
#define WP_HOOK_PRE_RUN_POD_SANDBOX 1 /* before */
#define WP_HOOK_POST_RUN_POD_SANDBOX 2 /* after */
#define WP_HOOK_PRE_CREATE_CONTAINER 3 /* before */
#define WP_HOOK_POST_CREATE_CONTAINER 4 /* after */
#define WP_HOOK_PRE_START_CONTAINER 5 /* before */
#define WP_HOOK_POST_START_CONTAINER 6 /* after */
#define WP_HOOK_PRE_UPDATE_CONTAINER_RESOURCES 7 /* before */
#define WP_HOOK_POST_UPDATE_CONTAINER_RESOURCES 8 /* after */
#define WP_HOOK_POST_STOP_CONTAINER 9 /* after */
#define WP_HOOK_POST_REMOVE_CONTAINER 10 /* after */
#define WP_HOOK_POST_STOP_POD_SANDBOX 11 /* after */
#define WP_HOOK_PRE_STOP_CONTAINER 12 /* before, cannot refuse */
#define WP_HOOK_PRE_REMOVE_CONTAINER 13 /* before, cannot refuse */
#define WP_HOOK_PRE_STOP_POD_SANDBOX 14 /* before, cannot refuse */
#define WP_HOOK_PRE_REMOVE_POD_SANDBOX 15 /* before, cannot refuse */
#define WP_HOOK_POST_REMOVE_POD_SANDBOX 16 /* after */
#define WP_HOOK_PRE_UPDATE_POD_SANDBOX_RESOURCES 17 /* before */
#define WP_HOOK_POST_UPDATE_POD_SANDBOX_RESOURCES 18 /* after */
#define WP_HOOK_PRE_EXEC 19 /* before */
#define WP_HOOK_POST_EXEC 20 /* after */
#define WP_HOOK_PRE_EXEC_SYNC 21 /* before */
#define WP_HOOK_POST_EXEC_SYNC 22 /* after */
#define WP_HOOK_PRE_ATTACH 23 /* before */
#define WP_HOOK_POST_ATTACH 24 /* after */
#define WP_HOOK_PRE_PORT_FORWARD 25 /* before */
#define WP_HOOK_POST_PORT_FORWARD 26 /* after */
#define WP_HOOK_PRE_CHECKPOINT_CONTAINER 27 /* before */
#define WP_HOOK_POST_CHECKPOINT_CONTAINER 28 /* after */
#define WP_HOOK_PRE_CHECKPOINT_POD 29 /* before */
#define WP_HOOK_POST_CHECKPOINT_POD 30 /* after */
#define WP_HOOK_PRE_RESTORE_POD 31 /* before */
#define WP_HOOK_POST_RESTORE_POD 32 /* after */
#define WP_HOOK_PRE_PULL_IMAGE 33 /* before */
#define WP_HOOK_POST_PULL_IMAGE 34 /* after */
#define WP_HOOK_PRE_REMOVE_IMAGE 35 /* before */
#define WP_HOOK_POST_REMOVE_IMAGE 36 /* after */
#define WP_HOOK_SYNCHRONIZE 37 /* standalone */
#define WP_HOOK_TICK 38 /* standalone */

/* Fields of the objects. */
#define WP_EVENT_HOOK 1 /* i64 */
#define WP_EVENT_TIME 2 /* i64, ns */
#define WP_EVENT_METHOD 3 /* string */
#define WP_EVENT_IMAGE 4 /* string */
#define WP_EVENT_IMAGE_REF 5 /* string */
#define WP_EVENT_COMMAND 6 /* list */
#define WP_EVENT_TTY 7 /* i64 */
#define WP_EVENT_STDIN 8 /* i64 */
#define WP_EVENT_TIMEOUT 9 /* i64, s */
#define WP_EVENT_EXIT_CODE 10 /* i64 */
#define WP_EVENT_PORTS 11 /* list */
#define WP_EVENT_LOCATION 12 /* string */
#define WP_POD_ID 1 /* string */
#define WP_POD_NAME 2 /* string */
#define WP_POD_NAMESPACE 3 /* string */
#define WP_POD_UID 4 /* string */
#define WP_POD_ATTEMPT 5 /* i64 */
#define WP_POD_RUNTIME_HANDLER 6 /* string */
#define WP_POD_QOS 7 /* string */
#define WP_POD_CGROUP_PARENT 8 /* string */
#define WP_POD_LABELS 9 /* map */
#define WP_POD_ANNOTATIONS 10 /* map */
#define WP_POD_HOSTNAME 11 /* string */
#define WP_POD_STATE 12 /* string */
#define WP_POD_SYSCTLS 13 /* map */
#define WP_POD_LOG_DIRECTORY 14 /* string */
#define WP_POD_NETWORK_NAMESPACE 15 /* string */
#define WP_POD_PID_NAMESPACE 16 /* string */
#define WP_POD_IPC_NAMESPACE 17 /* string */
#define WP_POD_USER_NAMESPACE 18 /* string */
#define WP_POD_PRIVILEGED 19 /* i64 */
#define WP_POD_PORT_MAPPINGS 20 /* list */
#define WP_CONTAINER_ID 1 /* string */
#define WP_CONTAINER_NAME 2 /* string */
#define WP_CONTAINER_ATTEMPT 3 /* i64 */
#define WP_CONTAINER_IMAGE 4 /* string */
#define WP_CONTAINER_POD_SANDBOX_ID 5 /* string */
#define WP_CONTAINER_LABELS 9 /* map */
#define WP_CONTAINER_ANNOTATIONS 10 /* map */
#define WP_CONTAINER_ENV 11 /* map */
#define WP_CONTAINER_STATE 12 /* string */
#define WP_CONTAINER_COMMAND 13 /* list */
#define WP_CONTAINER_ARGS 14 /* list */
#define WP_CONTAINER_WORKING_DIR 15 /* string */
#define WP_CONTAINER_MOUNTS 16 /* set */
#define WP_CONTAINER_DEVICES 17 /* set */
#define WP_CONTAINER_CDI_DEVICES 18 /* set */
#define WP_CONTAINER_RUN_AS_USER 19 /* i64 */
#define WP_CONTAINER_RUN_AS_GROUP 20 /* i64 */
#define WP_CONTAINER_RUN_AS_USERNAME 21 /* string */
#define WP_CONTAINER_SUPPLEMENTAL_GROUPS 22 /* set */
#define WP_CONTAINER_PRIVILEGED 23 /* i64 */
#define WP_CONTAINER_READONLY_ROOTFS 24 /* i64 */
#define WP_CONTAINER_LOG_PATH 25 /* string */
#define WP_CONTAINER_IMAGE_ID 26 /* string */
#define WP_CONTAINER_IMAGE_REPO_DIGESTS 27 /* list */
#define WP_CONTAINER_ADD_CAPABILITIES 32 /* list */
#define WP_CONTAINER_DROP_CAPABILITIES 33 /* list */
#define WP_CONTAINER_ADD_AMBIENT_CAPABILITIES 34 /* list */
#define WP_CONTAINER_NO_NEW_PRIVS 35 /* i64 */
#define WP_CONTAINER_SECCOMP 36 /* string */
#define WP_CONTAINER_APPARMOR 37 /* string */
#define WP_CONTAINER_IMAGE_VOLUMES 38 /* map */
#define WP_NODE_CGROUP_VERSION 1 /* i64 */
#define WP_NODE_RUNTIME_NAME 2 /* string */
#define WP_NODE_RUNTIME_VERSION 3 /* string */
#define WP_NODE_CGROUP_DRIVER 4 /* string */
#define WP_NODE_CPUS 5 /* i64 */
#define WP_NODE_MEMORY 6 /* i64, bytes */
#define WP_NODE_KERNEL 7 /* string */
#define WP_NODE_RUNTIME_HANDLERS 8 /* list */
#define WP_POD_OVERHEAD_CPU_PERIOD 32 /* i64, µs */
#define WP_POD_OVERHEAD_CPU_QUOTA 33 /* i64, µs */
#define WP_POD_OVERHEAD_CPU_SHARES 34 /* i64 */
#define WP_POD_OVERHEAD_MEMORY_LIMIT_IN_BYTES 35 /* i64, bytes */
#define WP_POD_OVERHEAD_OOM_SCORE_ADJ 36 /* i64 */
#define WP_POD_OVERHEAD_CPUSET_CPUS 37 /* string */
#define WP_POD_OVERHEAD_CPUSET_MEMS 38 /* string */
#define WP_POD_OVERHEAD_HUGEPAGE_LIMITS 39 /* map, bytes */
#define WP_POD_OVERHEAD_UNIFIED 40 /* map */
#define WP_POD_OVERHEAD_MEMORY_SWAP_LIMIT_IN_BYTES 41 /* i64, bytes */
#define WP_POD_RESOURCES_CPU_PERIOD 64 /* i64, µs */
#define WP_POD_RESOURCES_CPU_QUOTA 65 /* i64, µs */
#define WP_POD_RESOURCES_CPU_SHARES 66 /* i64 */
#define WP_POD_RESOURCES_MEMORY_LIMIT_IN_BYTES 67 /* i64, bytes */
#define WP_POD_RESOURCES_OOM_SCORE_ADJ 68 /* i64 */
#define WP_POD_RESOURCES_CPUSET_CPUS 69 /* string */
#define WP_POD_RESOURCES_CPUSET_MEMS 70 /* string */
#define WP_POD_RESOURCES_HUGEPAGE_LIMITS 71 /* map, bytes */
#define WP_POD_RESOURCES_UNIFIED 72 /* map */
#define WP_POD_RESOURCES_MEMORY_SWAP_LIMIT_IN_BYTES 73 /* i64, bytes */
#define WP_CONTAINER_RESOURCES_CPU_PERIOD 64 /* i64, µs */
#define WP_CONTAINER_RESOURCES_CPU_QUOTA 65 /* i64, µs */
#define WP_CONTAINER_RESOURCES_CPU_SHARES 66 /* i64 */
#define WP_CONTAINER_RESOURCES_MEMORY_LIMIT_IN_BYTES 67 /* i64, bytes */
#define WP_CONTAINER_RESOURCES_OOM_SCORE_ADJ 68 /* i64 */
#define WP_CONTAINER_RESOURCES_CPUSET_CPUS 69 /* string */
#define WP_CONTAINER_RESOURCES_CPUSET_MEMS 70 /* string */
#define WP_CONTAINER_RESOURCES_HUGEPAGE_LIMITS 71 /* map, bytes */
#define WP_CONTAINER_RESOURCES_UNIFIED 72 /* map */
#define WP_CONTAINER_RESOURCES_MEMORY_SWAP_LIMIT_IN_BYTES 73 /* i64, bytes */

/* Capabilities, as the manifest names them. */
#define WP_CAPABILITY_STORE_READ "store.read" /* look up other pods and containers */
#define WP_CAPABILITY_RESOURCES "resources" /* change CRI resources */
#define WP_CAPABILITY_UNIFIED "unified" /* change the unified map of CRI resources */
#define WP_CAPABILITY_ANNOTATIONS "annotations" /* change annotations */
#define WP_CAPABILITY_LABELS "labels" /* change labels of a pod */
#define WP_CAPABILITY_CGROUP_WRITE "cgroup.write" /* write cgroup files */
#define WP_CAPABILITY_METRIC "metric" /* count and measure */
#define WP_CAPABILITY_ENV "env" /* read and change the environment, which may hold secrets */
#define WP_CAPABILITY_CGROUP_READ "cgroup.read" /* read files of the cgroup of the pod, its QoS class or the container */
#define WP_CAPABILITY_CGROUP_PARENT "cgroup.parent" /* change the cgroup that a pod or container is put into */
#define WP_CAPABILITY_RUNTIME_HANDLER "runtime_handler" /* change the runtime handler of a pod */
#define WP_CAPABILITY_IMAGE "image" /* change the image that is pulled or run */
#define WP_CAPABILITY_ARGS "args" /* change command, arguments and working directory */
#define WP_CAPABILITY_MOUNTS "mounts" /* add and remove mounts */
#define WP_CAPABILITY_DEVICES "devices" /* add and remove devices */
#define WP_CAPABILITY_CDI "cdi" /* add and remove CDI devices */
#define WP_CAPABILITY_USER "user" /* change user and groups */
#define WP_CAPABILITY_UPDATE_OTHERS "update.others" /* change resources and cgroup files of pods and containers other than the event's */
#define WP_CAPABILITY_STATE_KV "state.kv" /* keep values from one call to the next */
#define WP_CAPABILITY_CRI_RAW "cri.raw" /* read the whole request; without env and credentials unless they are granted too */
#define WP_CAPABILITY_CREDENTIALS "credentials" /* see the registry credentials of PullImage in cri_raw */
#define WP_CAPABILITY_POD_LIMITS "pod.limits" /* set CPU and memory limits of containers above the pod's, which is lifted then */
#define WP_CAPABILITY_STORE_READ_ALL "store.read.all" /* with store.read, find and read pods and containers outside of the operator's match */

/* Objects. */
#define WP_OBJECT_EVENT 0 /* the event */
#define WP_OBJECT_POD 1 /* the event's pod */
#define WP_OBJECT_CONTAINER 2 /* the event's container */
#define WP_OBJECT_NODE 3 /* the node */
#define WP_OBJECT_FIRST_HANDLE 16 /* the first handle */
#define WP_OBJECT_QOS_CLASS 65536 /* plus a pod: the pod's QoS class, whose cgroup can only be read */

/* Errors. */
#define WP_ERR_OK 0
#define WP_ERR_NOT_FOUND (-1) /* no such object, field, key or file */
#define WP_ERR_UNSUPPORTED (-2) /* this node, kernel or host cannot do it */
#define WP_ERR_DENIED (-3) /* not declared by the plugin, not granted by the operator, or not for plugins to write */
#define WP_ERR_INVALID (-4) /* malformed, out of range, or not of the field's type */
#define WP_ERR_TOO_LARGE (-5) /* the value exceeds a limit */
#define WP_ERR_LIMIT (-6) /* too many operations in this call */
#define WP_ERR_READ_ONLY (-7) /* not writable in this hook */
#define WP_ERR_CONFLICT (-8) /* an earlier plugin set it to another value */

/* Kinds of wp_find. */
#define WP_BY_POD_ID 0 /* the id of a pod sandbox; gives that pod */
#define WP_BY_POD_UID 1 /* the uid of a Kubernetes pod; gives its newest sandbox */
#define WP_BY_POD_NAME 2 /* `namespace/name` of a Kubernetes pod; gives its newest sandbox */
#define WP_BY_CONTAINER_ID 3 /* the id of a container; gives that container */

/* What wp_hook returns if it does not fail. */
#define WP_CONTINUE 0 /* the call goes on */
#define WP_REJECT 1 /* the call is refused; reject was called */

/* Codes of wp_reject. */
#define WP_REJECT_INVALID_ARGUMENT 3 /* InvalidArgument */
#define WP_REJECT_PERMISSION_DENIED 7 /* PermissionDenied */
#define WP_REJECT_RESOURCE_EXHAUSTED 8 /* ResourceExhausted */
#define WP_REJECT_FAILED_PRECONDITION 9 /* FailedPrecondition, as 0 is */

/* Levels of wp_log. */
#define WP_LOG_DEBUG 0 /* debug */
#define WP_LOG_INFO 1 /* info */
#define WP_LOG_WARN 2 /* warn */
#define WP_LOG_ERROR 3 /* error */

/* Kinds of wp1_metric. */
#define WP_METRIC_ADD 0 /* a counter grows by the value, which is not negative */
#define WP_METRIC_SET 1 /* a gauge is the value */
#define WP_METRIC_OBSERVE 2 /* a histogram takes the value */

/* Features. */
#define WP_FEATURE_CGROUP_V2 1 /* the node has cgroup v2 */
#define WP_FEATURE_CGROUP_FILES 2 /* the host reads and writes cgroup files */
#define WP_FEATURE_UPDATE 3 /* writes on handles are applied */
#define WP_FEATURE_KV 4 /* values survive a reload of the plugin */

/* Host functions as they are, in module wp1. ABI.md says what each does. The helpers below call them. */

__attribute__((import_module("wp1"), import_name("get")))
int32_t wp1_get(int32_t object, int32_t field, void *buf, size_t cap);

__attribute__((import_module("wp1"), import_name("get_i64")))
int32_t wp1_get_i64(int32_t object, int32_t field, int64_t *out);

__attribute__((import_module("wp1"), import_name("map_get")))
int32_t wp1_map_get(int32_t object, int32_t field, const char *key, size_t key_len, void *buf, size_t cap);

__attribute__((import_module("wp1"), import_name("map_dump")))
int32_t wp1_map_dump(int32_t object, int32_t field, void *buf, size_t cap);

__attribute__((import_module("wp1"), import_name("list_dump")))
int32_t wp1_list_dump(int32_t object, int32_t field, void *buf, size_t cap);

__attribute__((import_module("wp1"), import_name("cri_raw")))
int32_t wp1_cri_raw(void *buf, size_t cap);

__attribute__((import_module("wp1"), import_name("cgroup_get")))
int32_t wp1_cgroup_get(int32_t object, const char *file, size_t file_len, void *buf, size_t cap);

__attribute__((import_module("wp1"), import_name("pod_find")))
int32_t wp1_pod_find(int32_t kind, const char *name, size_t name_len);

__attribute__((import_module("wp1"), import_name("pod_list")))
int32_t wp1_pod_list(const char *ns, size_t ns_len, void *buf, size_t cap);

__attribute__((import_module("wp1"), import_name("container_list")))
int32_t wp1_container_list(int32_t pod, void *buf, size_t cap);

__attribute__((import_module("wp1"), import_name("set_i64")))
int32_t wp1_set_i64(int32_t object, int32_t field, int64_t value);

__attribute__((import_module("wp1"), import_name("set_bytes")))
int32_t wp1_set_bytes(int32_t object, int32_t field, const char *value, size_t value_len);

__attribute__((import_module("wp1"), import_name("map_set")))
int32_t wp1_map_set(int32_t object, int32_t field, const char *key, size_t key_len, const char *value, size_t value_len);

__attribute__((import_module("wp1"), import_name("map_del")))
int32_t wp1_map_del(int32_t object, int32_t field, const char *key, size_t key_len);

__attribute__((import_module("wp1"), import_name("list_set")))
int32_t wp1_list_set(int32_t object, int32_t field, const char *list, size_t list_len);

__attribute__((import_module("wp1"), import_name("list_add")))
int32_t wp1_list_add(int32_t object, int32_t field, const char *element, size_t element_len);

__attribute__((import_module("wp1"), import_name("list_del")))
int32_t wp1_list_del(int32_t object, int32_t field, const char *key, size_t key_len);

__attribute__((import_module("wp1"), import_name("cgroup_set")))
int32_t wp1_cgroup_set(int32_t object, const char *file, size_t file_len, const char *value, size_t value_len);

__attribute__((import_module("wp1"), import_name("reject")))
int32_t wp1_reject(int32_t code, const char *reason, size_t reason_len);

__attribute__((import_module("wp1"), import_name("fail")))
void wp1_fail(const char *reason, size_t reason_len);

__attribute__((import_module("wp1"), import_name("abort")))
void wp1_abort(const char *reason, size_t reason_len);

__attribute__((import_module("wp1"), import_name("config")))
int32_t wp1_config(void *buf, size_t cap);

__attribute__((import_module("wp1"), import_name("log")))
void wp1_log(int32_t level, const char *text, size_t text_len);

__attribute__((import_module("wp1"), import_name("log_level")))
int32_t wp1_log_level(void);

__attribute__((import_module("wp1"), import_name("metric")))
int32_t wp1_metric(int32_t kind, const char *name, size_t name_len, int64_t value);

__attribute__((import_module("wp1"), import_name("kv_get")))
int32_t wp1_kv_get(const char *key, size_t key_len, void *buf, size_t cap);

__attribute__((import_module("wp1"), import_name("kv_set")))
int32_t wp1_kv_set(const char *key, size_t key_len, const char *value, size_t value_len);

__attribute__((import_module("wp1"), import_name("kv_del")))
int32_t wp1_kv_del(const char *key, size_t key_len);

__attribute__((import_module("wp1"), import_name("now")))
int64_t wp1_now(void);

__attribute__((import_module("wp1"), import_name("random")))
int32_t wp1_random(void *buf, size_t len);

__attribute__((import_module("wp1"), import_name("feature")))
int32_t wp1_feature(int32_t feature);

__attribute__((import_module("wp1"), import_name("cgroup_read")))
int32_t wp1_cgroup_read(const char *objects, size_t objects_len, const char *files, size_t files_len, void *buf, size_t cap);

__attribute__((import_module("wp1"), import_name("withdraw")))
int32_t wp1_withdraw(int32_t object, int32_t field, const char *key, size_t key_len);

__attribute__((import_module("wp1"), import_name("conflict")))
int32_t wp1_conflict(void *buf, size_t cap);

/* What a plugin defines. */

__attribute__((export_name("wp_abi"))) int32_t wp_abi(void);
__attribute__((export_name("wp_manifest"))) int64_t wp_manifest(void);
__attribute__((export_name("wp_configure"))) int32_t wp_configure(void);
__attribute__((export_name("wp_hook"))) int32_t wp_hook(int32_t hook);
/* End of the generated part. */

/* ---- The plugin ---- */

/*
 * WP_PLUGIN is the plugin's manifest: a JSON object, written as it is. It goes into
 * the custom section wp.manifest, where tools can read it. WP_SDK is one of its members.
 */
#define WP_PLUGIN(...)                                                                  \
	__asm__(".section .custom_section.wp.manifest,\"\",@\n\t.ascii " WP__TWICE(__VA_ARGS__) "\n"); \
	int32_t wp_abi(void) { return WP_ABI_VERSION; }
/* WP_SDK is the member of the manifest that tells people what the plugin was built with. */
#define WP_SDK "sdk": "c 0.1.0"
#define WP__TWICE(...) WP__ONCE(#__VA_ARGS__)
#define WP__ONCE(...) #__VA_ARGS__

/* ---- Texts ---- */

/* wp_text is bytes with a length, not terminated. A text that is not there has no ptr. */
typedef struct wp_text {
	const char *ptr;
	size_t len;
} wp_text;

/* WP_TEXT is the text of a string literal. */
#define WP_TEXT(literal) (wp_make_text((literal), sizeof(literal) - 1))

static inline wp_text wp_make_text(const char *ptr, size_t len) {
	wp_text t;
	t.ptr = ptr;
	t.len = len;
	return t;
}

/* wp_there reports whether a text is there; an empty one is. */
static inline int wp_there(wp_text t) { return t.ptr != 0; }

static inline int wp_equal(wp_text a, wp_text b) {
	if (a.len != b.len) return 0;
	for (size_t i = 0; i < a.len; i++)
		if (a.ptr[i] != b.ptr[i]) return 0;
	return 1;
}

static inline int wp_has_prefix(wp_text t, wp_text prefix) {
	return t.len >= prefix.len && wp_equal(wp_make_text(t.ptr, prefix.len), prefix);
}

/*
 * wp_parse_int reads a whole number in decimal, and reports whether the text is one
 * that fits.
 */
static inline int wp_parse_int(wp_text t, int64_t *out) {
	size_t i = t.len > 0 && t.ptr[0] == '-';
	int64_t v = 0; /* negative, as there is one more of those */
	if (i == t.len) return 0;
	for (; i < t.len; i++) {
		int digit = t.ptr[i] - '0';
		if (digit < 0 || digit > 9) return 0;
		if (v < INT64_MIN / 10 || __builtin_sub_overflow(v * 10, (int64_t)digit, &v)) return 0;
	}
	if (t.ptr[0] != '-' && __builtin_sub_overflow((int64_t)0, v, &v)) return 0;
	*out = v;
	return 1;
}

/* ---- Memory ---- */

/* Where the linker says that the heap begins. */
extern char __heap_base[];

static char *wp__next;

/*
 * wp_alloc returns memory that is not set to anything. The host puts the guest's memory
 * back after each call, so that nothing need be freed; with the state "instance" it does
 * not, and memory should be the plugin's own. There is an end to it: the guest is then
 * aborted.
 */
static inline char *wp_alloc(size_t size) {
	char *start = wp__next ? wp__next : __heap_base;
	size_t have = __builtin_wasm_memory_size(0) << 16;
	if (size > SIZE_MAX - (size_t)start - 0xffff) wp1_abort("out of memory", 13);
	if ((size_t)start + size > have && __builtin_wasm_memory_grow(0, ((size_t)start + size - have + 0xffff) >> 16) == SIZE_MAX)
		wp1_abort("out of memory", 13);
	wp__next = start + size;
	return start;
}

/* wp_join puts two texts together. */
static inline wp_text wp_join(wp_text a, wp_text b) {
	char *out = wp_alloc(a.len + b.len);
	for (size_t i = 0; i < a.len; i++) out[i] = a.ptr[i];
	for (size_t i = 0; i < b.len; i++) out[a.len + i] = b.ptr[i];
	return wp_make_text(out, a.len + b.len);
}

/* wp_format_int writes a number in decimal. */
static inline wp_text wp_format_int(int64_t v) {
	uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
	char *end = wp_alloc(20) + 20, *p = end;
	do {
		*--p = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (v < 0) *--p = '-';
	return wp_make_text(p, (size_t)(end - p));
}

/* ---- Refusals ---- */

static int32_t wp__error; /* the first refusal that nobody dealt with */
static const char *wp__helper; /* that was refused */
static const char *wp__field;  /* of it, as the plugin wrote it; 0 if it has none */
static wp_text wp__what;  /* its key, file or name, or what wp_check was given; not there if it has none */
static int wp__last;      /* whether it is also the last one */
static int32_t wp__now;   /* the result of the last helper that called the host */

static inline int32_t wp__check(int32_t result, const char *helper, const char *field, wp_text what) {
	wp__now = result;
	wp__last = result < 0 && wp__error == 0;
	if (wp__last) {
		wp__error = result;
		wp__helper = helper;
		wp__field = field;
		wp__what = what;
	}
	return result;
}

/*
 * wp_check remembers a result of a host function if it is an error, and returns it. What was
 * refused is for the message. The helpers below need no such call.
 */
static inline int32_t wp_check(int32_t result, wp_text what) { return wp__check(result, "", 0, what); }

/* wp__absent notes a value that is not there, which is no refusal. */
static inline void wp__absent(void) {
	wp__now = WP_ERR_NOT_FOUND;
	wp__last = 0;
}

/*
 * wp_last_result is the result of the last helper below: 0 or more, or an error. A helper
 * that reads returns a text or a number, so this tells why it is empty:
 *
 *     wp_text stat = wp_read_cgroup(container, WP_TEXT("cpu.stat"));
 *     if (wp_handled(wp_last_result(), WP_ERR_UNSUPPORTED)) continue;
 */
static inline int32_t wp_last_result(void) { return wp__now; }

/*
 * wp_handled reports whether the last helper's result is this error, and if it is, it no
 * longer fails the hook: the plugin has dealt with it.
 *
 *     int32_t result = wp_set_entry(WP_OBJECT_CONTAINER, WP_CONTAINER_RESOURCES_UNIFIED, WP_TEXT("memory.high"), limit);
 *     if (wp_handled(result, WP_ERR_UNSUPPORTED)) wp_log(WP_LOG_INFO, WP_TEXT("cgroup v1: not set"));
 */
static inline int wp_handled(int32_t result, int32_t error) {
	if (result != error) return 0;
	if (wp__last) wp__error = 0;
	wp__last = 0;
	return 1;
}

static inline wp_text wp_error_name(int32_t error) {
	switch (error) {
	case WP_ERR_NOT_FOUND: return WP_TEXT("not found");
	case WP_ERR_UNSUPPORTED: return WP_TEXT("unsupported");
	case WP_ERR_DENIED: return WP_TEXT("denied");
	case WP_ERR_INVALID: return WP_TEXT("invalid");
	case WP_ERR_TOO_LARGE: return WP_TEXT("too large");
	case WP_ERR_LIMIT: return WP_TEXT("limit reached");
	case WP_ERR_READ_ONLY: return WP_TEXT("read-only here");
	case WP_ERR_CONFLICT: return WP_TEXT("conflict");
	}
	return WP_TEXT("unknown error");
}

/* ---- The answer: what wp_hook and wp_configure return ---- */

static inline wp_text wp__terminated(const char *s) {
	size_t len = 0;
	while (s && s[len]) len++;
	return wp_make_text(s, len);
}

/*
 * wp_result says that all is well, or gives the first refusal that nobody dealt with:
 * wp_set_entry WP_CONTAINER_RESOURCES_UNIFIED memory.high: unsupported.
 */
static inline int32_t wp_result(void) {
	wp_text reason;
	int32_t error = wp__error;
	if (error == 0) return WP_CONTINUE;
	wp__error = 0; /* for the next call, of a plugin with the state "instance" */
	reason = wp__terminated(wp__helper);
	if (wp__field) reason = wp_join(wp_join(reason, WP_TEXT(" ")), wp__terminated(wp__field));
	if (wp_there(wp__what)) {
		if (reason.len) reason = wp_join(reason, WP_TEXT(" "));
		reason = wp_join(reason, wp__what);
	}
	reason = wp_join(wp_join(reason, WP_TEXT(": ")), wp_error_name(error));
	wp1_fail(reason.ptr, reason.len);
	return error;
}

/* wp_failure fails the hook in the plugin's own words. */
static inline int32_t wp_failure(wp_text reason) {
	wp__error = 0;
	wp1_fail(reason.ptr, reason.len);
	return WP_ERR_INVALID;
}

/* wp_reject refuses the call, whatever the failure policy. The code is a WP_REJECT_. */
static inline int32_t wp_reject(int32_t code, wp_text reason) {
	if (wp__check(wp1_reject(code, reason.ptr, reason.len), "wp_reject", 0, wp_make_text(0, 0)) < 0) return wp_result();
	wp__error = 0;
	return WP_REJECT;
}

/* wp_abort ends the guest at once with a reason, for a state that cannot be. */
__attribute__((noreturn)) static inline void wp_abort(wp_text reason) {
	wp1_abort(reason.ptr, reason.len);
	__builtin_trap();
}

/* wp_log writes a line to the proxy's log. The level is a WP_LOG_. */
static inline void wp_log(int32_t level, wp_text text) { wp1_log(level, text.ptr, text.len); }

/* wp_logs reports whether the proxy keeps lines of a level, so that a plugin can spare itself others. */
static inline int wp_logs(int32_t level) { return level >= wp1_log_level(); }

/* ---- Reading ---- */

/* wp_now is the event's time in nanoseconds since the Unix epoch. It does not move while a handler runs. */
static inline int64_t wp_now(void) { return wp1_now(); }

/* wp_random fills a buffer of 256 bytes at most with numbers that follow from the plugin and the event. They are not for keys. */
static inline int32_t wp_random(void *buf, size_t len) {
	return wp__check(wp1_random(buf, len), "wp_random", 0, wp_make_text(0, 0));
}

/* wp_has_feature tells whether this node and proxy have a feature, a WP_FEATURE_. */
static inline int wp_has_feature(int32_t feature) { return wp1_feature(feature) > 0; }

/*
 * WP__FILL calls a host function that fills a buffer, with the length that it needs. A
 * value that is not there is no text; any other error is remembered.
 */
#define WP__FILL(helper, field, what, call)                                             \
	char *buf = 0;                                                                      \
	size_t cap = 0;                                                                     \
	int32_t n = (call);                                                                 \
	if (n >= 0) {                                                                       \
		cap = (size_t)n;                                                                \
		buf = wp_alloc(cap);                                                            \
		n = (call);                                                                     \
	}                                                                                   \
	if (n == WP_ERR_NOT_FOUND) {                                                        \
		wp__absent();                                                                   \
		return wp_make_text(0, 0);                                                      \
	}                                                                                   \
	if (wp__check(n, (helper), (field), (what)) < 0) return wp_make_text(0, 0);         \
	return wp_make_text(buf, (size_t)n)

/* wp_get_text reads a string field. */
static inline wp_text wp__get_text(int32_t object, int32_t field, const char *named) {
	WP__FILL("wp_get_text", named, wp_make_text(0, 0), wp1_get(object, field, buf, cap));
}
#define wp_get_text(object, field) wp__get_text((object), (field), #field)

/* wp_get_int reads an i64 field, 0 if it is not there. */
static inline int64_t wp__get_int(int32_t object, int32_t field, const char *named) {
	int64_t v = 0;
	int32_t result = wp1_get_i64(object, field, &v);
	if (result == WP_ERR_NOT_FOUND)
		wp__absent();
	else
		wp__check(result, "wp_get_int", named, wp_make_text(0, 0));
	return v;
}
#define wp_get_int(object, field) wp__get_int((object), (field), #field)

/* wp_get_entry reads the value of one key of a map. */
static inline wp_text wp__get_entry(int32_t object, int32_t field, const char *named, wp_text key) {
	WP__FILL("wp_get_entry", named, key, wp1_map_get(object, field, key.ptr, key.len, buf, cap));
}
#define wp_get_entry(object, field, ...) wp__get_entry((object), (field), #field, __VA_ARGS__) /* key */

/* wp_get_map reads a whole map, for wp_next_entry. */
static inline wp_text wp__get_map(int32_t object, int32_t field, const char *named) {
	WP__FILL("wp_get_map", named, wp_make_text(0, 0), wp1_map_dump(object, field, buf, cap));
}
#define wp_get_map(object, field) wp__get_map((object), (field), #field)

/* wp_get_list reads a list or set, for wp_next. Each element of a set of records is a map. */
static inline wp_text wp__get_list(int32_t object, int32_t field, const char *named) {
	WP__FILL("wp_get_list", named, wp_make_text(0, 0), wp1_list_dump(object, field, buf, cap));
}
#define wp_get_list(object, field) wp__get_list((object), (field), #field)

/* wp_read_cgroup reads a file of an object's cgroup by its cgroup v2 name. */
static inline wp_text wp_read_cgroup(int32_t object, wp_text file) {
	WP__FILL("wp_read_cgroup", 0, file, wp1_cgroup_get(object, file.ptr, file.len, buf, cap));
}

/* wp_request reads the request as CRI's protobuf. */
static inline wp_text wp_request(void) { WP__FILL("wp_request", 0, wp_make_text(0, 0), wp1_cri_raw(buf, cap)); }

/* wp_config reads the plugin's configuration, empty if there is none. */
static inline wp_text wp_config(void) { WP__FILL("wp_config", 0, wp_make_text(0, 0), wp1_config(buf, cap)); }

/* wp_kv_get reads a value that wp_kv_set kept in an earlier call. */
static inline wp_text wp_kv_get(wp_text key) { WP__FILL("wp_kv_get", 0, key, wp1_kv_get(key.ptr, key.len, buf, cap)); }

/* wp_conflict_with reads the id of the plugin that has set what the last helper refused with WP_ERR_CONFLICT was to set. */
static inline wp_text wp_conflict_with(void) { WP__FILL("wp_conflict_with", 0, wp_make_text(0, 0), wp1_conflict(buf, cap)); }

/* wp_find looks a pod or container up, and returns its handle, or 0. The kind is a WP_BY_. */
static inline int32_t wp_find(int32_t kind, wp_text name) {
	int32_t result = wp1_pod_find(kind, name.ptr, name.len);
	if (result == WP_ERR_NOT_FOUND) {
		wp__absent();
		return 0;
	}
	return wp__check(result, "wp_find", 0, name) < 0 ? 0 : result;
}

/* wp_pods lists the pods of a namespace, or all, for wp_next_handle. */
static inline wp_text wp_pods(wp_text ns) {
	WP__FILL("wp_pods", 0, ns, wp1_pod_list(ns.ptr, ns.len, buf, cap));
}

/* wp_containers lists the containers of a pod, for wp_next_handle. */
static inline wp_text wp_containers(int32_t pod) {
	WP__FILL("wp_containers", 0, wp_make_text(0, 0), wp1_container_list(pod, buf, cap));
}

/*
 * wp_read_cgroups reads files of many objects at once, up to 1,024: a map for wp_next_entry, with
 * each file of each object in their order. The objects are handles, 4 bytes each, as
 * wp_containers gives them; of WP_OBJECT_NODE it gives all containers. The files are a list
 * as wp_encode_list makes it. A key is empty, or the number of an error.
 */
static inline wp_text wp_read_cgroups(wp_text objects, wp_text files) {
	WP__FILL("wp_read_cgroups", 0, wp_make_text(0, 0),
		wp1_cgroup_read(objects.ptr, objects.len, files.ptr, files.len, buf, cap));
}

/* ---- Going through what was read. wp_from starts; each step reports whether there was one ---- */

/* wp_cursor is a place in a list or map. */
typedef struct wp_cursor {
	wp_text rest;
	uint32_t left;
} wp_cursor;

static inline uint32_t wp__number(wp_text *t) {
	uint32_t n = 0;
	if (t->len < 4) {
		t->len = 0;
		return 0;
	}
	for (int i = 0; i < 4; i++) n |= (uint32_t)(unsigned char)t->ptr[i] << (8 * i);
	t->ptr += 4;
	t->len -= 4;
	return n;
}

static inline wp_text wp__counted(wp_text *t) {
	uint32_t n = wp__number(t);
	wp_text out = wp_make_text(t->ptr, n < t->len ? n : t->len);
	t->ptr += out.len;
	t->len -= out.len;
	return out;
}

/*
 *     wp_text key, value;
 *     wp_cursor c = wp_from(wp_get_map(WP_OBJECT_POD, WP_POD_LABELS));
 *     while (wp_next_entry(&c, &key, &value)) …
 */
static inline wp_cursor wp_from(wp_text dump) {
	wp_cursor c;
	c.rest = dump;
	c.left = wp__number(&c.rest);
	return c;
}

static inline int wp_next(wp_cursor *c, wp_text *element) {
	if (c->left == 0 || c->rest.len == 0) return 0;
	c->left--;
	*element = wp__counted(&c->rest);
	return 1;
}

static inline int wp_next_entry(wp_cursor *c, wp_text *key, wp_text *value) {
	if (!wp_next(c, key)) return 0;
	*value = wp__counted(&c->rest);
	return 1;
}

/* wp_next_handle takes handles off a list of them; 0 is the end. */
static inline int32_t wp_next_handle(wp_text *handles) { return (int32_t)wp__number(handles); }

/* ---- Writing. A refusal fails the hook, unless wp_handled takes it back ---- */

/* wp_set_int sets an i64 field. */
static inline int32_t wp__set_int(int32_t object, int32_t field, const char *named, int64_t v) {
	return wp__check(wp1_set_i64(object, field, v), "wp_set_int", named, wp_make_text(0, 0));
}
#define wp_set_int(object, field, ...) wp__set_int((object), (field), #field, __VA_ARGS__) /* v */

/* wp_set_text sets a string field. */
static inline int32_t wp__set_text(int32_t object, int32_t field, const char *named, wp_text v) {
	return wp__check(wp1_set_bytes(object, field, v.ptr, v.len), "wp_set_text", named, wp_make_text(0, 0));
}
#define wp_set_text(object, field, ...) wp__set_text((object), (field), #field, __VA_ARGS__) /* v */

/* wp_set_entry sets one key of a map. */
static inline int32_t wp__set_entry(int32_t object, int32_t field, const char *named, wp_text key, wp_text v) {
	return wp__check(wp1_map_set(object, field, key.ptr, key.len, v.ptr, v.len), "wp_set_entry", named, key);
}
#define wp_set_entry(object, field, ...) wp__set_entry((object), (field), #field, __VA_ARGS__) /* key, v */

/* wp_delete_entry removes one key of a map, if it is there. */
static inline int32_t wp__delete_entry(int32_t object, int32_t field, const char *named, wp_text key) {
	return wp__check(wp1_map_del(object, field, key.ptr, key.len), "wp_delete_entry", named, key);
}
#define wp_delete_entry(object, field, ...) wp__delete_entry((object), (field), #field, __VA_ARGS__) /* key */

/* wp_encode_list writes texts as wp_set_list takes them. */
static inline wp_text wp_encode_list(const wp_text *elements, size_t count) {
	size_t size = 4, at = 0;
	char *out;
	for (size_t i = 0; i < count; i++) size += 4 + elements[i].len;
	out = wp_alloc(size);
	for (int b = 0; b < 4; b++) out[at++] = (char)(count >> (8 * b));
	for (size_t i = 0; i < count; i++) {
		for (int b = 0; b < 4; b++) out[at++] = (char)(elements[i].len >> (8 * b));
		for (size_t j = 0; j < elements[i].len; j++) out[at++] = elements[i].ptr[j];
	}
	return wp_make_text(out, size);
}

/*
 * wp_encode_record writes an element of a set of records, such as a mount: keys and values
 * in turn, and how many pairs there are.
 *
 *     wp_text mount[] = {WP_TEXT("container_path"), WP_TEXT("/data"), WP_TEXT("host_path"), WP_TEXT("/srv")};
 *     wp_add(WP_OBJECT_CONTAINER, WP_CONTAINER_MOUNTS, wp_encode_record(mount, 2));
 */
static inline wp_text wp_encode_record(const wp_text *pairs, size_t count) {
	wp_text out = wp_encode_list(pairs, 2 * count);
	char *p = (char *)out.ptr;
	for (int b = 0; b < 4; b++) p[b] = (char)(count >> (8 * b));
	return out;
}

/* wp_set_list replaces a list. */
static inline int32_t wp__set_list(int32_t object, int32_t field, const char *named, const wp_text *elements, size_t count) {
	wp_text list = wp_encode_list(elements, count);
	return wp__check(wp1_list_set(object, field, list.ptr, list.len), "wp_set_list", named, wp_make_text(0, 0));
}
#define wp_set_list(object, field, ...) wp__set_list((object), (field), #field, __VA_ARGS__) /* elements, count */

/* wp_add adds an element to a set, in place of the one with its key. */
static inline int32_t wp__add(int32_t object, int32_t field, const char *named, wp_text element) {
	return wp__check(wp1_list_add(object, field, element.ptr, element.len), "wp_add", named, wp_make_text(0, 0));
}
#define wp_add(object, field, ...) wp__add((object), (field), #field, __VA_ARGS__) /* element */

/* wp_delete removes the element with a key from a set, if it is there. */
static inline int32_t wp__delete(int32_t object, int32_t field, const char *named, wp_text key) {
	return wp__check(wp1_list_del(object, field, key.ptr, key.len), "wp_delete", named, key);
}
#define wp_delete(object, field, ...) wp__delete((object), (field), #field, __VA_ARGS__) /* key */

/* wp_set_cgroup asks for a file of an object's cgroup, by its cgroup v2 name. ABI.md lists the files. */
static inline int32_t wp_set_cgroup(int32_t object, wp_text file, wp_text v) {
	return wp__check(wp1_cgroup_set(object, file.ptr, file.len, v.ptr, v.len), "wp_set_cgroup", 0, file);
}

/*
 * wp_withdraw takes back what the plugin has set of a field; of a map or set that of one key, else the key is WP_TEXT("").
 * What was set in this call is as if it had not been set. A resource that the plugin holds from an earlier event goes back to
 * kubelet's value. Others may set it then. It is no error if there is nothing to take back.
 */
static inline int32_t wp__withdraw(int32_t object, int32_t field, const char *named, wp_text key) {
	return wp__check(wp1_withdraw(object, field, key.ptr, key.len), "wp_withdraw", named, key);
}
#define wp_withdraw(object, field, ...) wp__withdraw((object), (field), #field, __VA_ARGS__) /* key */

/* wp_withdraw_cgroup takes back what the plugin has asked for of a file of an object's cgroup, in this call or an earlier one. */
static inline int32_t wp_withdraw_cgroup(int32_t object, wp_text file) {
	return wp__check(wp1_withdraw(object, 0, file.ptr, file.len), "wp_withdraw_cgroup", 0, file);
}

/* wp_kv_set keeps a value for later calls, if this one does not fail. */
static inline int32_t wp_kv_set(wp_text key, wp_text v) {
	return wp__check(wp1_kv_set(key.ptr, key.len, v.ptr, v.len), "wp_kv_set", 0, key);
}

/* wp_kv_delete removes a value that was kept, if it is there. */
static inline int32_t wp_kv_delete(wp_text key) { return wp__check(wp1_kv_del(key.ptr, key.len), "wp_kv_delete", 0, key); }

/*
 * wp_metric_add lets a counter grow by a value that is not negative. A value for a name of another kind, or for more than
 * 64 names, is dropped without an error, and the host counts it.
 */
static inline int32_t wp_metric_add(wp_text name, int64_t v) {
	return wp__check(wp1_metric(WP_METRIC_ADD, name.ptr, name.len, v), "wp_metric_add", 0, name);
}

/* wp_metric_set sets a gauge. */
static inline int32_t wp_metric_set(wp_text name, int64_t v) {
	return wp__check(wp1_metric(WP_METRIC_SET, name.ptr, name.len, v), "wp_metric_set", 0, name);
}

/* wp_metric_observe gives a histogram a value. */
static inline int32_t wp_metric_observe(wp_text name, int64_t v) {
	return wp__check(wp1_metric(WP_METRIC_OBSERVE, name.ptr, name.len, v), "wp_metric_observe", 0, name);
}

#ifdef __cplusplus
}
#endif

#endif
