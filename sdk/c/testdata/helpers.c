/* Calls every helper of wasmproxy.h; the fixtures beside it say what comes of it. */
#include "wasmproxy.h"

WP_PLUGIN({
	"name": "helpers",
	"version": "1.0.0-c",
	WP_SDK,
	"description": "quotes \"this\", and a \\ that is one",
	"hooks": ["PreCreateContainer", "PostStopContainer", "Tick"],
	"tick_ms": 1000,
	"capabilities": [
		"store.read", "resources", "unified", "annotations", "cgroup.write", "metric", "cgroup.read", "args",
		"mounts", "cdi", "user", "update.others", "state.kv", "cri.raw"
	]
})

static wp_text name; /* that wp_configure puts here stays */

int32_t wp_configure(void);
int32_t wp_configure(void) {
	name = wp_config();
	return wp_equal(name, WP_TEXT("\"wrong\"")) ? wp_failure(WP_TEXT("this is wrong")) : wp_result();
}

static void say_map(wp_text map) {
	wp_text key, value;
	wp_cursor c = wp_from(map);
	while (wp_next_entry(&c, &key, &value)) wp_log(WP_LOG_INFO, wp_join(wp_join(key, WP_TEXT("=")), value));
}

static int32_t read_all(void) {
	wp_text element, pods;
	wp_cursor c;
	int32_t pod;
	say_map(wp_get_map(WP_OBJECT_POD, WP_POD_LABELS));
	c = wp_from(wp_get_list(WP_OBJECT_CONTAINER, WP_CONTAINER_ARGS));
	while (wp_next(&c, &element)) wp_log(WP_LOG_INFO, wp_join(element, WP_TEXT(";")));
	c = wp_from(wp_get_list(WP_OBJECT_CONTAINER, WP_CONTAINER_MOUNTS));
	while (wp_next(&c, &element)) say_map(element);
	pods = wp_pods(WP_TEXT("other"));
	while ((pod = wp_next_handle(&pods)) != 0) {
		wp_text containers = wp_containers(pod);
		int32_t container;
		while ((container = wp_next_handle(&containers)) != 0)
			wp_log(WP_LOG_INFO, wp_get_text(container, WP_CONTAINER_NAME));
	}
	wp_log(WP_LOG_DEBUG, name);
	wp_log(WP_LOG_WARN, wp_read_cgroup(WP_OBJECT_POD, WP_TEXT("cpu.stat")));
	wp_log(WP_LOG_ERROR, wp_request());
	if (wp_there(wp_get_text(WP_OBJECT_EVENT, WP_EVENT_IMAGE))) wp_abort(WP_TEXT("no event has an image here"));
	return wp_result();
}

static int32_t write_all(void) {
	wp_text args[] = {WP_TEXT("a"), WP_TEXT(""), WP_TEXT("c")};
	wp_text mount[] = {WP_TEXT("container_path"), WP_TEXT("/data"), WP_TEXT("host_path"), WP_TEXT("/srv")};
	wp_set_list(WP_OBJECT_CONTAINER, WP_CONTAINER_ARGS, args, 3);
	wp_add(WP_OBJECT_CONTAINER, WP_CONTAINER_MOUNTS, wp_encode_record(mount, 2));
	wp_delete(WP_OBJECT_CONTAINER, WP_CONTAINER_MOUNTS, WP_TEXT("/old"));
	wp_add(WP_OBJECT_CONTAINER, WP_CONTAINER_CDI_DEVICES, WP_TEXT("vendor.com/class=name"));
	wp_set_int(WP_OBJECT_CONTAINER, WP_CONTAINER_RUN_AS_USER, 0);
	wp_set_text(WP_OBJECT_CONTAINER, WP_CONTAINER_RESOURCES_CPUSET_CPUS, WP_TEXT("0-3,7"));
	wp_set_entry(WP_OBJECT_CONTAINER, WP_CONTAINER_ANNOTATIONS, WP_TEXT("k"), WP_TEXT("v"));
	wp_delete_entry(WP_OBJECT_CONTAINER, WP_CONTAINER_ANNOTATIONS, WP_TEXT("d"));
	wp_set_cgroup(WP_OBJECT_CONTAINER, WP_TEXT("cpu.idle"), WP_TEXT("1"));
	wp_kv_set(WP_TEXT("kept"), wp_join(wp_kv_get(WP_TEXT("kept")), WP_TEXT("+")));
	wp_kv_delete(WP_TEXT("gone"));
	wp_metric_add(WP_TEXT("calls_total"), 2);
	return wp_result();
}

/* number reads the container's label, and gives it back in an annotation. */
static int32_t number(void) {
	int64_t v;
	wp_text text = wp_get_entry(WP_OBJECT_CONTAINER, WP_CONTAINER_LABELS, WP_TEXT("number"));
	if (!wp_there(text) || !wp_parse_int(text, &v)) return wp_failure(WP_TEXT("not a number"));
	wp_set_entry(WP_OBJECT_CONTAINER, WP_CONTAINER_ANNOTATIONS, WP_TEXT("number"), wp_format_int(v));
	return wp_result();
}

/* unreadable reads a file that the plugin may not read, and goes on without it. */
static int32_t unreadable(void) {
	wp_text stat = wp_read_cgroup(WP_OBJECT_CONTAINER, WP_TEXT("cpu.stat"));
	if (wp_there(stat) || !wp_handled(wp_last_result(), WP_ERR_DENIED)) return wp_failure(WP_TEXT("not handled"));
	if (wp_there(wp_get_entry(WP_OBJECT_CONTAINER, WP_CONTAINER_LABELS, WP_TEXT("none"))) || wp_last_result() != WP_ERR_NOT_FOUND)
		return wp_failure(WP_TEXT("found nothing"));
	wp_get_int(WP_OBJECT_CONTAINER, WP_CONTAINER_RUN_AS_USER);
	if (wp_last_result() != WP_ERR_NOT_FOUND) return wp_failure(WP_TEXT("found no user"));
	wp_get_text(WP_OBJECT_CONTAINER, WP_CONTAINER_NAME);
	return wp_last_result() < 0 ? wp_failure(WP_TEXT("found no name")) : wp_result();
}

static int32_t create(void) {
	wp_text what = wp_get_text(WP_OBJECT_CONTAINER, WP_CONTAINER_NAME);
	if (wp_equal(what, WP_TEXT("read"))) return read_all();
	if (wp_equal(what, WP_TEXT("write"))) return write_all();
	if (wp_equal(what, WP_TEXT("number"))) return number();
	if (wp_equal(what, WP_TEXT("unreadable"))) return unreadable();
	if (wp_equal(what, WP_TEXT("refuse"))) return wp_reject(WP_REJECT_PERMISSION_DENIED, WP_TEXT("not here"));
	if (wp_equal(what, WP_TEXT("give up"))) wp_abort(WP_TEXT("cannot be"));
	if (wp_has_prefix(what, WP_TEXT("ignored"))) wp_set_int(WP_OBJECT_CONTAINER, WP_CONTAINER_RESOURCES_CPU_QUOTA, 5);
	if (wp_has_prefix(what, WP_TEXT("handled"))) {
		int32_t result = wp_set_entry(WP_OBJECT_CONTAINER, WP_CONTAINER_RESOURCES_UNIFIED, WP_TEXT("memory.high"), WP_TEXT("1"));
		if (!wp_handled(result, WP_ERR_UNSUPPORTED)) return wp_failure(WP_TEXT("not handled"));
		if (wp_handled(result, WP_ERR_CONFLICT)) return wp_failure(WP_TEXT("handled twice"));
	}
	if (wp_equal(what, WP_TEXT("handled too late"))) {
		int32_t first = wp_set_int(WP_OBJECT_CONTAINER, WP_CONTAINER_RESOURCES_CPU_QUOTA, 5);
		wp_set_int(WP_OBJECT_CONTAINER, WP_CONTAINER_RESOURCES_CPU_SHARES, 2);
		wp_handled(first, WP_ERR_INVALID);
	}
	return wp_result();
}

static int32_t tick(void) {
	int32_t other = wp_find(WP_BY_CONTAINER_ID, WP_TEXT("c2"));
	if (wp_find(WP_BY_POD_NAME, WP_TEXT("none/none")) != 0) return wp_failure(WP_TEXT("found nothing"));
	wp_set_int(other, WP_CONTAINER_RESOURCES_CPU_SHARES, 2 * wp_get_int(other, WP_CONTAINER_RESOURCES_CPU_SHARES));
	return wp_result();
}

int32_t wp_hook(int32_t hook) {
	switch (hook) {
	case WP_HOOK_PRE_CREATE_CONTAINER: return create();
	case WP_HOOK_TICK: return tick();
	case WP_HOOK_POST_STOP_CONTAINER: return wp_reject(WP_REJECT_PERMISSION_DENIED, WP_TEXT("too late"));
	}
	return wp_failure(WP_TEXT("not a hook of the manifest"));
}
