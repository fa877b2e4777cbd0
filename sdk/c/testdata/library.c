/* A plugin that calls the library: with what the container's labels say, and gives the answer in annotations. */
#include "wasmproxy_library.h"

WP_PLUGIN({
	"name": "library",
	"version": "1",
	"hooks": ["PreCreateContainer"],
	"capabilities": ["annotations"]
})

static wp_text label(wp_text key) { return wp_get_entry(WP_OBJECT_CONTAINER, WP_CONTAINER_LABELS, key); }

static int64_t number(wp_text key) {
	int64_t v = 0;
	wp_text text = label(key);
	if (wp_there(text) && !wp_parse_int(text, &v)) wp_abort(WP_TEXT("not a number"));
	return v;
}

static void answer(wp_text key, wp_text value) {
	if (value.len) wp_set_entry(WP_OBJECT_CONTAINER, WP_CONTAINER_ANNOTATIONS, key, value);
}

static wp_text truth(int b) { return b ? WP_TEXT("true") : WP_TEXT("false"); }

/* list gives the labels prefix0, prefix1 and so on. */
static size_t list(wp_text prefix, wp_text *out) {
	size_t n = 0;
	while (n < 8 && wp_there(out[n] = label(wp_join(prefix, wp_format_int((int64_t)n))))) n++;
	return n;
}

static wp_text join(wp_text all, wp_text next, size_t n) { return n ? wp_join(wp_join(all, WP_TEXT("|")), next) : next; }

static wp_text int_or_none(int64_t v) { return v == 1LL << 60 ? WP_TEXT("-") : wp_format_int(v); }

static wp_text keys(wp_json o) {
	wp_text key, all = WP_TEXT("");
	wp_json_cursor c = wp_json_keys(o);
	for (size_t n = 0; wp_json_next_key(&c, &key); n++) all = join(all, key, n);
	return all;
}

static wp_text has_key(wp_json o, wp_text wanted) {
	wp_text key;
	wp_json_cursor c = wp_json_keys(o);
	while (wp_json_next_key(&c, &key))
		if (wp_equal(key, wanted)) return keys(wp_json_object(o, wanted));
	return WP_TEXT("-");
}

static wp_text texts(wp_json o, wp_text key) {
	wp_text text, all = WP_TEXT("");
	wp_json_cursor c = wp_json_texts(o, key);
	for (size_t n = 0; wp_json_next_text(&c, &text); n++) all = join(all, text, n);
	return all;
}

static wp_text text_members(wp_json o) {
	wp_text key, text, all = WP_TEXT("");
	wp_json_cursor c = wp_json_text_members(o);
	for (size_t n = 0; wp_json_next_text_member(&c, &key, &text); n++) all = join(all, wp_join(wp_join(key, WP_TEXT("=")), text), n);
	return all;
}

static wp_text object_members(wp_json o) {
	wp_text key, within, all = WP_TEXT("");
	wp_json object;
	wp_json_cursor c = wp_json_object_members(o);
	for (size_t n = 0; wp_json_next_object_member(&c, &key, &object); n++) {
		wp_text inner;
		wp_json_cursor k = wp_json_keys(object);
		within = WP_TEXT("");
		while (wp_json_next_key(&k, &inner)) within = wp_join(within.len ? wp_join(within, WP_TEXT(",")) : within, inner);
		all = join(all, wp_join(wp_join(key, WP_TEXT("=")), within), n);
	}
	return all;
}

static wp_text objects(wp_json o, wp_text key) {
	wp_json within;
	int64_t n = 0;
	wp_json_cursor c = wp_json_objects(o, key);
	while (wp_json_next_object(&c, &within)) n++;
	return wp_format_int(n);
}

static wp_text get(wp_json o, wp_text what, wp_text key) {
	wp_text values[8];
	if (wp_equal(what, WP_TEXT("text"))) return wp_json_text(o, key, WP_TEXT("-"));
	if (wp_equal(what, WP_TEXT("one_of"))) return wp_json_one_of(o, key, WP_TEXT("-"), values, list(WP_TEXT("value"), values));
	if (wp_equal(what, WP_TEXT("int")))
		return int_or_none(wp_json_int(o, key, number(WP_TEXT("least")), number(WP_TEXT("most")), 1LL << 60));
	if (wp_equal(what, WP_TEXT("parsed"))) return int_or_none(wp_json_parsed(o, key, wp_quantity_value, 1LL << 60));
	if (wp_equal(what, WP_TEXT("bool")))
		return wp_json_bool(o, key, 0) == wp_json_bool(o, key, 1) ? truth(wp_json_bool(o, key, 0)) : WP_TEXT("-");
	if (wp_equal(what, WP_TEXT("has"))) return truth(wp_json_has(o, key));
	if (wp_equal(what, WP_TEXT("object"))) return has_key(o, key);
	if (wp_equal(what, WP_TEXT("keys"))) return keys(o);
	if (wp_equal(what, WP_TEXT("text_members"))) return text_members(wp_json_object(o, key));
	if (wp_equal(what, WP_TEXT("object_members"))) return object_members(wp_json_object(o, key));
	if (wp_equal(what, WP_TEXT("texts"))) return texts(o, key);
	if (wp_equal(what, WP_TEXT("objects"))) return objects(o, key);
	if (wp_equal(what, WP_TEXT("fail"))) wp_json_fail(o, key, WP_TEXT("is wrong"));
	return WP_TEXT("");
}

static void json(wp_text text) {
	wp_text error, is = wp_make_text("", 0), in = label(WP_TEXT("in")), key = label(WP_TEXT("key")), what = label(WP_TEXT("get"));
	wp_json o = wp_json_parse(text, &error);
	if (in.len) o = wp_json_object(o, in);
	if (what.len) is = get(o, what, key);
	answer(wp_there(error) ? WP_TEXT("error") : WP_TEXT("is"), wp_there(error) ? error : is);
}

static void image(wp_text name) {
	wp_image image;
	wp_text error = wp_image_parse(name, &image);
	if (wp_image_is_id(name)) answer(WP_TEXT("id"), WP_TEXT("true"));
	if (wp_there(error)) {
		answer(WP_TEXT("error"), error);
		return;
	}
	answer(WP_TEXT("registry"), image.registry);
	answer(WP_TEXT("repository"), image.repository);
	answer(WP_TEXT("tag"), image.tag);
	answer(WP_TEXT("digest"), image.digest);
	answer(WP_TEXT("string"), wp_image_string(image));
	if (image.is_short) answer(WP_TEXT("short"), WP_TEXT("true"));
}

static void quantity(wp_text text) {
	int64_t value = 0, milli = 0;
	wp_text error = wp_quantity_value(text, &value);
	if (wp_there(error) != wp_there(wp_quantity_milli(text, &milli))) wp_abort(WP_TEXT("value and milli differ"));
	answer(WP_TEXT("error"), error);
	answer(WP_TEXT("value"), wp_format_int(value));
	answer(WP_TEXT("milli"), wp_format_int(milli));
}

static void decimal(wp_text text) {
	int64_t value = 0;
	answer(WP_TEXT("error"), wp_quantity_decimal(text, (size_t)number(WP_TEXT("decimals")), &value));
	answer(WP_TEXT("value"), wp_format_int(value));
}

static void globs(wp_text name) {
	wp_text all[8];
	size_t n = list(WP_TEXT("glob"), all);
	answer(WP_TEXT("accepts"), truth(wp_glob_accepts(all, n, name)));
	for (size_t i = 0; i < n; i++)
		if (!wp_glob_valid(all[i])) answer(WP_TEXT("invalid"), WP_TEXT("true"));
}

int32_t wp_hook(int32_t hook) {
	wp_text part = wp_get_text(WP_OBJECT_CONTAINER, WP_CONTAINER_NAME), text = label(WP_TEXT("text"));
	(void)hook;
	if (wp_equal(part, WP_TEXT("json"))) json(text);
	if (wp_equal(part, WP_TEXT("image"))) image(text);
	if (wp_equal(part, WP_TEXT("quantity"))) quantity(text);
	if (wp_equal(part, WP_TEXT("decimal"))) decimal(text);
	if (wp_equal(part, WP_TEXT("glob"))) globs(text);
	return wp_result();
}
