/* The program of README.md, in C. Of wasmproxy.h it uses what is generated. */
#include "wasmproxy.h"

WP_PLUGIN({"name":"conformance","version":"1.0.0","hooks":["PreRunPodSandbox","PostRunPodSandbox","PreCreateContainer","PostCreateContainer","PreStartContainer","PostStartContainer","PreUpdateContainerResources","PostUpdateContainerResources","PostStopContainer","PostRemoveContainer","PostStopPodSandbox","PreStopContainer","PreRemoveContainer","PreStopPodSandbox","PreRemovePodSandbox","PostRemovePodSandbox","PreUpdatePodSandboxResources","PostUpdatePodSandboxResources","PreExec","PostExec","PreExecSync","PostExecSync","PreAttach","PostAttach","PrePortForward","PostPortForward","PreCheckpointContainer","PostCheckpointContainer","PreCheckpointPod","PostCheckpointPod","PreRestorePod","PostRestorePod","PrePullImage","PostPullImage","PreRemoveImage","PostRemoveImage","Synchronize","Tick"],"tick_ms":1000,"capabilities":["store.read","resources","unified","annotations","labels","cgroup.write","metric","env","cgroup.read","cgroup.parent","runtime_handler","image","args","mounts","devices","cdi","user","update.others","state.kv","cri.raw","credentials","pod.limits","store.read.all"]})

static uint8_t script[384 << 10], buffer[4096], texts[(1 << 20) + 16], *pc = script;
static char line[9000];
static size_t written, given, used, shown; /* of line, args, texts and buffer */
static int always;
static int64_t args[8];

static uint32_t word(void) {
	uint32_t v = (uint32_t)pc[0] | (uint32_t)pc[1] << 8 | (uint32_t)pc[2] << 16 | (uint32_t)pc[3] << 24;
	pc += 4;
	return v;
}

static void push(int64_t v) { args[given++] = v; }

static uint8_t *room(uint32_t n) {
	shown = n;
	__builtin_memset(buffer, 0xaa, n);
	return buffer;
}

/* take reads one argument of the script for the next call. */
static void take(void) {
	uint32_t n;
	switch (*pc++) {
	case 0: /* a number */
		n = word();
		push((int64_t)(n | (uint64_t)word() << 32));
		break;
	case 1: /* a text */
		n = word();
		push((intptr_t)pc);
		push(n);
		pc += n;
		break;
	case 2: /* one byte, many times */
		n = word();
		__builtin_memset(texts + used, *pc++, n);
		push((intptr_t)(texts + used));
		push(n);
		used += n;
		break;
	case 3: /* a buffer */
		push((intptr_t)room(word()));
		push((int64_t)shown);
		break;
	case 4: /* a place that is shown whatever the result */
		push((intptr_t)room(word()));
		always = 1;
	}
}

static void say(void) {
	wp1_log(WP_LOG_INFO, line, written);
	written = 0;
}

static void number(int64_t v) {
	uint64_t rest = (uint64_t)v;
	if (v < 0) {
		line[written++] = '-';
		rest = 0 - rest;
	}
	if (rest >= 10) number((int64_t)(rest / 10));
	line[written++] = (char)('0' + rest % 10);
}

/* tell says a result, and what is in the buffer. */
static void tell(int64_t result) {
	number(result);
	if (!always && result < (int64_t)shown) shown = result > 0 ? (size_t)result : 0;
	if (shown > 0) line[written++] = ' ';
	for (size_t i = 0; i < shown; i++) {
		line[written++] = "0123456789abcdef"[buffer[i] >> 4];
		line[written++] = "0123456789abcdef"[buffer[i] & 15];
	}
	say();
}

#define I(i) ((int32_t)args[i])
#define U(i) ((size_t)args[i])
#define P(i) ((void *)(uintptr_t)args[i])

static void call(uint8_t op) {
	switch (op) {
	case 0: tell(wp1_get(I(0), I(1), P(2), U(3))); break;
	case 1: tell(wp1_get_i64(I(0), I(1), P(2))); break;
	case 2: tell(wp1_map_get(I(0), I(1), P(2), U(3), P(4), U(5))); break;
	case 3: tell(wp1_map_dump(I(0), I(1), P(2), U(3))); break;
	case 4: tell(wp1_list_dump(I(0), I(1), P(2), U(3))); break;
	case 5: tell(wp1_cri_raw(P(0), U(1))); break;
	case 6: tell(wp1_cgroup_get(I(0), P(1), U(2), P(3), U(4))); break;
	case 7: tell(wp1_pod_find(I(0), P(1), U(2))); break;
	case 8: tell(wp1_pod_list(P(0), U(1), P(2), U(3))); break;
	case 9: tell(wp1_container_list(I(0), P(1), U(2))); break;
	case 10: tell(wp1_set_i64(I(0), I(1), args[2])); break;
	case 11: tell(wp1_set_bytes(I(0), I(1), P(2), U(3))); break;
	case 12: tell(wp1_map_set(I(0), I(1), P(2), U(3), P(4), U(5))); break;
	case 13: tell(wp1_map_del(I(0), I(1), P(2), U(3))); break;
	case 14: tell(wp1_list_set(I(0), I(1), P(2), U(3))); break;
	case 15: tell(wp1_list_add(I(0), I(1), P(2), U(3))); break;
	case 16: tell(wp1_list_del(I(0), I(1), P(2), U(3))); break;
	case 17: tell(wp1_cgroup_set(I(0), P(1), U(2), P(3), U(4))); break;
	case 18: tell(wp1_reject(I(0), P(1), U(2))); break;
	case 19: wp1_fail(P(0), U(1)); break;
	case 20: wp1_abort(P(0), U(1)); break;
	case 21: tell(wp1_config(P(0), U(1))); break;
	case 22: wp1_log(I(0), P(1), U(2)); break;
	case 23: tell(wp1_log_level()); break;
	case 24: tell(wp1_metric(I(0), P(1), U(2), args[3])); break;
	case 25: tell(wp1_kv_get(P(0), U(1), P(2), U(3))); break;
	case 26: tell(wp1_kv_set(P(0), U(1), P(2), U(3))); break;
	case 27: tell(wp1_kv_del(P(0), U(1))); break;
	case 28: tell(wp1_now()); break;
	case 29: tell(wp1_random(P(0), U(1))); break;
	case 30: tell(wp1_feature(I(0))); break;
	case 31: tell(wp1_cgroup_read(P(0), U(1), P(2), U(3), P(4), U(5))); break;
	case 32: tell(wp1_withdraw(I(0), I(1), P(2), U(3))); break;
	case 33: tell(wp1_conflict(P(0), U(1))); break;
	}
}

/* run carries the script out up to its next end, and returns what that says. */
static int32_t run(void) {
	for (;;) {
		uint8_t op = *pc++, n;
		if (op == 0xff) return (int32_t)word();
		given = used = shown = 0;
		always = 0;
		for (n = *pc++; n > 0; n--) take();
		call(op);
	}
}

static uint8_t digit(uint8_t c) { return (uint8_t)(c < 'a' ? c - '0' : c - 'a' + 10); }

/* The configuration is a JSON string of digits, which are decoded in place. */
int32_t wp_configure(void);
int32_t wp_configure(void) {
	int32_t n = wp1_config((void *)script, sizeof script);
	if (n == 0) return 0;
	for (int32_t i = 0; 2 * i + 2 < n; i++) script[i] = (uint8_t)(digit(script[2 * i + 1]) << 4 | digit(script[2 * i + 2]));
	return run();
}

int32_t wp_hook(int32_t hook) {
	number(hook);
	say();
	return run();
}
