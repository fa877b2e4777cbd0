/* The program of sdk/internal/calls in C, with the helpers of wasmproxy.h. */
#include "wasmproxy.h"

WP_PLUGIN({
	"name": "calls",
	"version": "1.0.0",
	"tick_ms": 1000,
	"hooks": [
		"Tick", "PreStartContainer", "PreCreateContainer", "PostStartContainer", "PostExecSync", "PrePullImage", "PreExec",
		"PreUpdatePodSandboxResources", "PreUpdateContainerResources"
	],
	"capabilities": [
		"store.read", "resources", "cgroup.read", "cgroup.write", "update.others", "args", "mounts", "devices", "cdi",
		"user", "image", "state.kv", "metric", "cri.raw"
	]
})

#define T WP_TEXT

static void slow(int32_t c) {
	wp_text id = wp_get_text(c, WP_CONTAINER_ID), stat = T("");
	int32_t n;
	wp_set_int(c, WP_CONTAINER_RESOURCES_CPU_SHARES, 2);
	n = wp1_cgroup_get(c, "cpu.stat", 8, 0, 0);
	if (n == WP_ERR_NOT_FOUND) {
		wp_log(WP_LOG_DEBUG, wp_join(id, T(" has no cpu.stat")));
		return;
	}
	stat = wp_read_cgroup(c, T("cpu.stat"));
	wp_log(WP_LOG_INFO, wp_join(wp_join(id, T(" ")), stat));
	wp_set_cgroup(c, T("cpu.idle"), T("1"));
}

/* calm slows the running containers of a namespace. */
static int32_t calm(wp_text ns) {
	wp_text pods = wp_pods(ns);
	int32_t pod, c;
	while ((pod = wp_next_handle(&pods)) != 0) {
		wp_text containers = wp_containers(pod), id = wp_get_text(pod, WP_POD_ID);
		while ((c = wp_next_handle(&containers)) != 0)
			if (wp_equal(wp_get_text(c, WP_CONTAINER_STATE), T("running")) && wp_equal(wp_get_text(c, WP_CONTAINER_POD_SANDBOX_ID), id))
				slow(c);
	}
	return wp_result();
}

/* classes reads a file of the QoS class of every pod. */
static int32_t classes(void) {
	wp_text pods = wp_pods(T("")), min;
	int32_t pod;
	while ((pod = wp_next_handle(&pods)) != 0) {
		wp_text id = wp_get_text(pod, WP_POD_ID);
		if (wp1_cgroup_get(WP_OBJECT_QOS_CLASS + pod, "memory.min", 10, 0, 0) == WP_ERR_NOT_FOUND) {
			wp_log(WP_LOG_INFO, wp_join(id, T(" is in no QoS class")));
			continue;
		}
		min = wp_read_cgroup(WP_OBJECT_QOS_CLASS + pod, T("memory.min"));
		wp_log(WP_LOG_INFO, wp_join(wp_join(id, T(" has ")), wp_join(wp_get_text(pod, WP_POD_QOS), wp_join(T("'s "), min))));
	}
	min = wp_read_cgroup(WP_OBJECT_QOS_CLASS + WP_OBJECT_POD, T("memory.min"));
	wp_log(WP_LOG_INFO, wp_join(T("its own has "), min));
	return wp_result();
}

/* survey reads two files of every container. */
static int32_t survey(void) {
	const wp_text names[] = {T("cpu.stat"), T("memory.current")};
	wp_text all = wp_containers(WP_OBJECT_NODE), key, value;
	wp_cursor files = wp_from(wp_read_cgroups(all, wp_encode_list(names, 2)));
	int32_t c;
	while ((c = wp_next_handle(&all)) != 0) {
		wp_text line = wp_get_text(c, WP_CONTAINER_ID);
		for (int i = 0; i < 2 && wp_next_entry(&files, &key, &value); i++) {
			if (wp_equal(key, T("-1"))) value = T("not found");
			line = wp_join(wp_join(line, T(" ")), value);
		}
		wp_log(WP_LOG_INFO, line);
	}
	return classes();
}

/* elements reads a list into an array, and returns how many there are. */
static size_t elements(int32_t field, wp_text *out) {
	wp_text e;
	size_t n = 0;
	wp_cursor c = wp_from(wp_get_list(WP_OBJECT_CONTAINER, field));
	while (wp_next(&c, &e)) out[n++] = e;
	return n;
}

/* copy gives a record another container_path, and what more it is to have. */
static wp_text copy(wp_text record, wp_text path, const wp_text *more, size_t n) {
	wp_text pairs[16], key, value;
	size_t i = 0;
	wp_cursor c = wp_from(record);
	while (wp_next_entry(&c, &key, &value)) {
		pairs[i++] = key;
		pairs[i++] = wp_equal(key, T("container_path")) ? path : value;
	}
	while (n-- > 0) pairs[i++] = *more++;
	return wp_encode_record(pairs, i / 2);
}

static wp_text path_of(wp_text record) {
	wp_text key, value;
	wp_cursor c = wp_from(record);
	while (wp_next_entry(&c, &key, &value))
		if (wp_equal(key, T("container_path"))) return value;
	return T("");
}

/* rearrange changes every list of a container by what it finds there. */
static int32_t rearrange(void) {
	const wp_text more[] = {T("selinux_relabel"), T("true"), T("recursive_read_only"), T("true")};
	wp_text list[16];
	int64_t id;
	size_t n = elements(WP_CONTAINER_COMMAND, list);
	wp_set_list(WP_OBJECT_CONTAINER, WP_CONTAINER_COMMAND, list, n);
	n = elements(WP_CONTAINER_ARGS, list);
	list[n] = T("--verbose");
	wp_set_list(WP_OBJECT_CONTAINER, WP_CONTAINER_ARGS, list, n + 1);
	for (n = elements(WP_CONTAINER_MOUNTS, list); n > 0; n--) {
		wp_delete(WP_OBJECT_CONTAINER, WP_CONTAINER_MOUNTS, path_of(list[n - 1]));
		wp_add(WP_OBJECT_CONTAINER, WP_CONTAINER_MOUNTS, copy(list[n - 1], T("/copy"), more, 4));
	}
	for (n = elements(WP_CONTAINER_DEVICES, list); n > 0; n--)
		wp_add(WP_OBJECT_CONTAINER, WP_CONTAINER_DEVICES, copy(list[n - 1], T("/dev/c"), 0, 0));
	if (elements(WP_CONTAINER_CDI_DEVICES, list) == 1 && wp_equal(list[0], T("example.com/gpu=0")))
		wp_add(WP_OBJECT_CONTAINER, WP_CONTAINER_CDI_DEVICES, T("example.com/gpu=1"));
	for (n = elements(WP_CONTAINER_SUPPLEMENTAL_GROUPS, list); n > 0; n--) {
		wp_parse_int(list[n - 1], &id);
		wp_delete(WP_OBJECT_CONTAINER, WP_CONTAINER_SUPPLEMENTAL_GROUPS, list[n - 1]);
		wp_add(WP_OBJECT_CONTAINER, WP_CONTAINER_SUPPLEMENTAL_GROUPS, wp_format_int(id + 1));
	}
	if (wp1_get_i64(WP_OBJECT_CONTAINER, WP_CONTAINER_RUN_AS_USER, &id) != 0 || id != 0 ||
	    wp1_get_i64(WP_OBJECT_CONTAINER, WP_CONTAINER_RUN_AS_GROUP, &id) != WP_ERR_NOT_FOUND)
		return wp_failure(T("the user is not root, or there is a group"));
	wp_set_int(WP_OBJECT_CONTAINER, WP_CONTAINER_RUN_AS_GROUP, 1000);
	return wp_result();
}

/* slower slows a container as long as it has a label, and yields to plugins before it. */
static int32_t slower(void) {
	if (!wp_there(wp_get_entry(WP_OBJECT_CONTAINER, WP_CONTAINER_LABELS, T("slow")))) {
		wp_set_int(WP_OBJECT_CONTAINER, WP_CONTAINER_RESOURCES_CPU_PERIOD, 5000);
		wp_withdraw(WP_OBJECT_CONTAINER, WP_CONTAINER_RESOURCES_CPU_PERIOD, T(""));
		wp_withdraw(WP_OBJECT_CONTAINER, WP_CONTAINER_RESOURCES_CPU_SHARES, T(""));
		wp_withdraw_cgroup(WP_OBJECT_CONTAINER, T("cpu.idle"));
		return wp_result();
	}
	if (wp_handled(wp_set_int(WP_OBJECT_CONTAINER, WP_CONTAINER_RESOURCES_CPU_SHARES, 2), WP_ERR_CONFLICT))
		wp_log(WP_LOG_INFO, wp_join(wp_conflict_with(), T(" was first")));
	wp_set_cgroup(WP_OBJECT_CONTAINER, T("cpu.idle"), T("1"));
	return wp_result();
}

static wp_text words(void) {
	wp_text e, all = T("");
	wp_cursor c = wp_from(wp_get_list(WP_OBJECT_EVENT, WP_EVENT_COMMAND));
	while (wp_next(&c, &e)) all = all.len > 0 ? wp_join(wp_join(all, T(" ")), e) : e;
	return all;
}

static void measure(void) {
	wp_text code = wp_format_int(wp_get_int(WP_OBJECT_EVENT, WP_EVENT_EXIT_CODE));
	wp_metric_add(wp_join(wp_join(T("commands_total{code=\""), code), T("\"}")), 1);
	wp_metric_set(T("seconds"), wp_get_int(WP_OBJECT_EVENT, WP_EVENT_TIMEOUT));
	wp_metric_observe(T("size"), (int64_t)wp_request().len);
}

/* count keeps and counts what is run. */
static int32_t count(void) {
	char first[200], again[200];
	int64_t n;
	wp_text text = wp_kv_get(T("count")), line;
	if (!wp_there(text)) return wp_result();
	wp_kv_set(T("last"), T("nothing"));
	if (!wp_parse_int(text, &n)) return wp_failure(wp_join(wp_join(T("count is \""), text), T("\"")));
	wp_kv_set(T("count"), wp_format_int(n + 1));
	wp_kv_set(T("last"), words());
	wp_kv_delete(T("old"));
	if (wp1_kv_get("old", 3, 0, 0) != WP_ERR_NOT_FOUND) return wp_failure(T("old is still there"));
	measure();
	wp_random(first, sizeof first);
	wp_random(again, sizeof again);
	if (wp_equal(wp_make_text(first, sizeof first), wp_make_text(again, sizeof again)) || !wp_logs(WP_LOG_DEBUG) || !wp_has_feature(WP_FEATURE_KV))
		return wp_failure(T("no random numbers, no debug lines, or no kv"));
	line = wp_join(wp_format_int(wp_now()), wp_join(T(" "), wp_format_int(n / 6)));
	wp_log(WP_LOG_WARN, wp_join(line, wp_join(T(" "), wp_format_int(wp_get_int(WP_OBJECT_NODE, WP_NODE_CGROUP_VERSION)))));
	return wp_result();
}

static int32_t mirror(void) {
	wp_text image = wp_get_text(WP_OBJECT_EVENT, WP_EVENT_IMAGE);
	wp_set_text(WP_OBJECT_EVENT, WP_EVENT_IMAGE, wp_join(T("mirror.example.com"), wp_make_text(image.ptr + 9, image.len - 9)));
	return wp_result();
}

static int32_t guard(void) {
	wp_text shell = wp_get_entry(WP_OBJECT_POD, WP_POD_LABELS, T("shell"));
	if (wp_equal(shell, T("no")) && wp_get_int(WP_OBJECT_EVENT, WP_EVENT_TTY) && !wp_get_int(WP_OBJECT_EVENT, WP_EVENT_STDIN))
		return wp_reject(WP_REJECT_PERMISSION_DENIED, wp_join(T("no terminals in "), wp_get_text(WP_OBJECT_CONTAINER, WP_CONTAINER_NAME)));
	return wp_result();
}

static int32_t doubled(void) {
	wp_set_int(WP_OBJECT_POD, WP_POD_OVERHEAD_MEMORY_LIMIT_IN_BYTES, 2 * wp_get_int(WP_OBJECT_POD, WP_POD_OVERHEAD_MEMORY_LIMIT_IN_BYTES));
	wp_set_int(WP_OBJECT_POD, WP_POD_RESOURCES_CPU_QUOTA, 2 * wp_get_int(WP_OBJECT_POD, WP_POD_RESOURCES_CPU_QUOTA));
	return wp_result();
}

int32_t wp_hook(int32_t hook) {
	switch (hook) {
	case WP_HOOK_TICK: return calm(T("batch"));
	case WP_HOOK_PRE_START_CONTAINER: return calm(T("own"));
	case WP_HOOK_PRE_CREATE_CONTAINER: return rearrange();
	case WP_HOOK_POST_START_CONTAINER: return survey();
	case WP_HOOK_PRE_UPDATE_CONTAINER_RESOURCES: return slower();
	case WP_HOOK_POST_EXEC_SYNC: return count();
	case WP_HOOK_PRE_PULL_IMAGE: return mirror();
	case WP_HOOK_PRE_EXEC: return guard();
	case WP_HOOK_PRE_UPDATE_POD_SANDBOX_RESOURCES: return doubled();
	}
	return wp_failure(T("not a hook of the manifest"));
}
