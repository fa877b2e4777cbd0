/*
 * wasmproxy_library.h: what many plugins need besides wasmproxy.h, which it includes: settings in
 * JSON, globs, names of images, and quantities of Kubernetes. The SDKs in Go and Rust have the same, with the
 * same meaning and the same errors. A plugin gets what it calls.
 *
 * A function that may fail returns what is wrong, and a text that is not there if nothing is. Texts
 * are parts of what was read; where they cannot be, they are made with wp_alloc.
 */
#ifndef WASMPROXY_LIBRARY_H
#define WASMPROXY_LIBRARY_H

#include "wasmproxy.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline wp_text wp__none(void) { return wp_make_text(0, 0); }

/* wp__part is a text without its first bytes, and no longer than that. */
static inline wp_text wp__part(wp_text t, size_t from, size_t to) { return wp_make_text(t.ptr + from, to - from); }

/* wp__byte is a byte of a text, 0 behind its end. */
static inline unsigned char wp__byte(wp_text t, size_t i) { return i < t.len ? (unsigned char)t.ptr[i] : 0; }

static inline int wp__digit(unsigned char c) { return c >= '0' && c <= '9'; }
static inline int wp__small(unsigned char c) { return c >= 'a' && c <= 'z'; }

/* wp__digits passes digits. */
static inline size_t wp__digits(wp_text t, size_t i) {
	while (wp__digit(wp__byte(t, i))) i++;
	return i;
}

static inline wp_text wp__quoted_error(wp_text text, wp_text why) {
	return wp_join(wp_join(WP_TEXT("\""), text), wp_join(WP_TEXT("\" "), why));
}

/* ---- JSON ---- */

/*
 * wp_json is an object in JSON, or one that is not there. A getter returns its last argument for a member
 * that is not there or null, or that is of another type or out of range. The error that wp_json_parse was
 * given then says so; the first one stays. It has the path of keys, the place in bytes from 0, and what is wrong:
 *
 *     wp_text error;
 *     wp_json settings = wp_json_parse(wp_config(), &error);
 *     threshold = wp_json_int(settings, WP_TEXT("threshold"), 0, 100, 50);
 *     return wp_there(error) ? wp_failure(error) : wp_result();
 *
 * Read settings in wp_configure: each getter looks its key up in the text.
 */
typedef struct wp_json {
	wp_text text;
	size_t at; /* where it begins, WP__NOWHERE if it is not there */
	wp_text *error;
} wp_json;

#define WP__NOWHERE ((size_t)-1)
#define WP__JSON_DEPTH 64

/* wp__wrong is why a text is no JSON. */
typedef const char *wp__wrong;

static inline size_t wp__space(wp_text t, size_t i) {
	for (;; i++) {
		unsigned char c = wp__byte(t, i);
		if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return i;
	}
}

/* wp__hex reads \uXXXX, -1 if it is not there. */
static inline int32_t wp__hex(wp_text t, size_t i) {
	int32_t n = 0;
	if (wp__byte(t, i) != '\\' || wp__byte(t, i + 1) != 'u') return -1;
	for (size_t k = i + 2; k < i + 6; k++) {
		unsigned char c = wp__byte(t, k), letter = (unsigned char)((c | 0x20) - 'a');
		if (!wp__digit(c) && letter > 5) return -1;
		n = n << 4 | (wp__digit(c) ? c - '0' : letter + 10);
	}
	return n;
}

/* wp__json_string returns where the string at i ends; or where it is wrong, and in which way. */
static inline size_t wp__json_string(wp_text t, size_t i, wp__wrong *wrong) {
	for (i++; i < t.len; i++) {
		unsigned char c = (unsigned char)t.ptr[i];
		if (c == '"') return i + 1;
		if (c < ' ') {
			*wrong = "a control character is in a string";
			return i;
		}
		if (c != '\\') continue;
		switch (wp__byte(t, i + 1)) {
		case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
			i++;
			continue;
		}
		if (wp__hex(t, i) < 0) {
			*wrong = "an escape in a string is wrong";
			return i;
		}
		i += 5;
	}
	*wrong = "a string does not end";
	return i;
}

static inline size_t wp__json_number(wp_text t, size_t start, wp__wrong *wrong) {
	size_t first = start + (t.ptr[start] == '-'), i = wp__digits(t, first), begin;
	int good = i > first && (wp__byte(t, first) != '0' || i == first + 1);
	if (wp__byte(t, i) == '.') {
		begin = i + 1;
		i = wp__digits(t, begin);
		good = good && i > begin;
	}
	if ((wp__byte(t, i) | 0x20) == 'e') {
		begin = i + 1;
		if (wp__byte(t, begin) == '+' || wp__byte(t, begin) == '-') begin++;
		i = wp__digits(t, begin);
		good = good && i > begin;
	}
	if (good) return i;
	*wrong = "a number is not as JSON has it";
	return start;
}

/* wp__json_keyed returns where the value of the member at i begins. */
static inline size_t wp__json_keyed(wp_text t, size_t i, wp__wrong *wrong) {
	if (wp__byte(t, i) != '"') {
		*wrong = "a key in quotes is missing";
		return i;
	}
	i = wp__json_string(t, i, wrong);
	if (*wrong) return i;
	i = wp__space(t, i);
	if (wp__byte(t, i) == ':') return wp__space(t, i + 1);
	*wrong = "a colon is missing";
	return i;
}

/* wp__json_value returns where the value at i ends. */
static inline size_t wp__json_value(wp_text t, size_t i, int depth, wp__wrong *wrong) {
	unsigned char c = wp__byte(t, i), closing = (unsigned char)(c + 2); /* in ASCII */
	if (c == '"') return wp__json_string(t, i, wrong);
	if (c == '-' || wp__digit(c)) return wp__json_number(t, i, wrong);
	if (c != '{' && c != '[') {
		wp_text rest = wp__part(t, i < t.len ? i : t.len, t.len);
		if (wp_has_prefix(rest, WP_TEXT("true")) || wp_has_prefix(rest, WP_TEXT("null"))) return i + 4;
		if (wp_has_prefix(rest, WP_TEXT("false"))) return i + 5;
		*wrong = "a value is missing";
		return i;
	}
	if (depth == WP__JSON_DEPTH) {
		*wrong = "the value is nested too deeply";
		return i;
	}
	i = wp__space(t, i + 1);
	if (wp__byte(t, i) == closing) return i + 1;
	for (;;) {
		if (c == '{') i = wp__json_keyed(t, i, wrong);
		if (!*wrong) i = wp__json_value(t, i, depth + 1, wrong);
		if (*wrong) return i;
		i = wp__space(t, i);
		if (wp__byte(t, i) == closing) return i + 1;
		if (wp__byte(t, i) != ',') {
			*wrong = c == '{' ? "a comma or } is missing" : "a comma or ] is missing";
			return i;
		}
		i = wp__space(t, i + 1);
	}
}

/* wp__utf8 writes a character, and returns how many bytes it has. Half of a surrogate pair is U+FFFD. */
static inline size_t wp__utf8(char *out, int32_t c) {
	size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
	if (c >= 0xd800 && c < 0xe000) c = 0xfffd;
	if (more == 0) {
		out[0] = (char)c;
		return 1;
	}
	for (size_t k = more; k > 0; k--) {
		out[k] = (char)(0x80 | (c & 0x3f));
		c >>= 6;
	}
	out[0] = (char)((0xff00 >> (more + 1)) | c);
	return more + 1;
}

/* wp__json_unquoted is the text of a string that is JSON. */
static inline wp_text wp__json_unquoted(wp_text raw) {
	size_t n = 0, i = 0;
	char *out;
	raw = wp__part(raw, 1, raw.len - 1);
	while (i < raw.len && raw.ptr[i] != '\\') i++;
	if (i == raw.len) return raw;
	out = wp_alloc(raw.len);
	for (i = 0; i < raw.len;) {
		unsigned char c = (unsigned char)raw.ptr[i];
		int32_t high, low;
		if (c != '\\') {
			out[n++] = (char)c;
			i++;
			continue;
		}
		c = wp__byte(raw, i + 1);
		if (c != 'u') {
			out[n++] = (char)(c == 'b' ? '\b' : c == 'f' ? '\f' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c);
			i += 2;
			continue;
		}
		high = wp__hex(raw, i);
		low = wp__hex(raw, i + 6);
		i += 6;
		if (high >> 10 == 0xd800 >> 10 && low >> 10 == 0xdc00 >> 10) {
			high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
			i += 6;
		}
		n += wp__utf8(out + n, high);
	}
	return wp_make_text(out, n);
}

/* wp__member is a member of an object or an element of a list: the places of its parts. */
typedef struct wp__member {
	size_t key_at;  /* the quote before its key; the same as at for an element */
	size_t at, end; /* its value */
	int broken;     /* the value is no JSON, and end is where */
} wp__member;

/* wp_json_cursor is a place in a list, or among the members of an object. */
typedef struct wp_json_cursor {
	wp_json of;
	size_t at;
	int object;
} wp_json_cursor;

static inline wp_json_cursor wp__json_enter(wp_json of, size_t at) {
	wp_json_cursor c;
	c.of = of;
	c.object = wp__byte(of.text, at) == '{';
	c.at = at == WP__NOWHERE ? of.text.len : wp__space(of.text, at + 1);
	return c;
}

/* wp__json_next goes on. In a text that is no JSON the last member ends where it is wrong. */
static inline int wp__json_next(wp_json_cursor *c, wp__member *m) {
	wp_text t = c->of.text;
	wp__wrong wrong = 0;
	size_t i;
	unsigned char first;
	m->key_at = c->at;
	m->at = c->object ? wp__json_keyed(t, c->at, &wrong) : c->at;
	first = wp__byte(t, m->at);
	if (wrong || first == 0 || first == ']') return 0;
	m->end = wp__json_value(t, m->at, 0, &wrong);
	m->broken = wrong != 0;
	c->at = t.len;
	i = wp__space(t, m->end);
	if (!m->broken && wp__byte(t, i) == ',') c->at = wp__space(t, i + 1);
	return 1;
}

static inline wp_text wp__json_key(wp_text t, wp__member m) {
	wp__wrong wrong = 0;
	return wp__json_unquoted(wp__part(t, m.key_at, wp__json_string(t, m.key_at, &wrong)));
}

static inline wp_text wp__json_raw(wp_text t, wp__member m) { return wp__part(t, m.at, m.end); }

/* wp__json_path gives the keys and numbers of what is around a place in a text, such as rules[1].name. */
static inline wp_text wp__json_path(wp_json o, size_t to) {
	wp_text path = WP_TEXT("");
	size_t i = wp__space(o.text, 0);
	while (i < to && (wp__byte(o.text, i) == '{' || wp__byte(o.text, i) == '[')) {
		wp_json_cursor c = wp__json_enter(o, i);
		wp__member m;
		int64_t n = 0;
		int there = wp__json_next(&c, &m);
		while (there && to >= m.end && !(m.broken && to == m.end)) {
			there = wp__json_next(&c, &m);
			n++;
		}
		if (!there || m.key_at > to) return path;
		if (!c.object)
			path = wp_join(wp_join(path, WP_TEXT("[")), wp_join(wp_format_int(n), WP_TEXT("]")));
		else
			path = wp_join(path.len ? wp_join(path, WP_TEXT(".")) : path, wp__json_key(o.text, m));
		if (to < m.at) return path;
		i = m.at;
	}
	return path;
}

static inline void wp__json_fail(wp_json o, size_t at, wp_text message) {
	if (wp_there(*o.error)) return;
	if (at != WP__NOWHERE) {
		wp_text path = wp__json_path(o, at);
		if (path.len) path = wp_join(path, WP_TEXT(" at "));
		path = wp_join(wp_join(path, WP_TEXT("byte ")), wp_format_int((int64_t)at));
		message = wp_join(wp_join(path, WP_TEXT(": ")), message);
	}
	*o.error = message;
}

/* wp__json_refuse makes the error of a value that is not as it should be. It shows 64 bytes of it. */
static inline void wp__json_refuse(wp_json o, wp__member m, wp_text want) {
	wp_text raw = wp__json_raw(o.text, m);
	if (raw.len > 64) {
		raw.len = 64;
		while (raw.len && (raw.ptr[raw.len] & 0xc0) == 0x80) raw.len--; /* within a character */
		raw = wp_join(raw, WP_TEXT("..."));
	}
	wp__json_fail(o, m.at, wp_join(wp_join(raw, WP_TEXT(" is not ")), want));
}

/*
 * wp_json_parse reads a text that is one object as RFC 8259 has it, at most 64 values deep. An empty text is an
 * empty object. The error is the caller's; all that is read of the object leaves it as it is, or sets it.
 */
static inline wp_json wp_json_parse(wp_text text, wp_text *error) {
	wp_json o;
	wp__member m;
	wp__wrong wrong = 0;
	size_t rest;
	*error = wp__none();
	o.text = text;
	o.error = error;
	o.at = WP__NOWHERE;
	if (text.len == 0) return o;
	m.at = wp__space(text, 0);
	m.end = wp__json_value(text, m.at, 0, &wrong);
	rest = wp__space(text, m.end);
	if (wrong)
		wp__json_fail(o, m.end, wp__terminated(wrong));
	else if (rest < text.len)
		wp__json_fail(o, rest, WP_TEXT("more follows the value"));
	else if (wp__byte(text, m.at) != '{')
		wp__json_refuse(o, m, WP_TEXT("an object"));
	else
		o.at = m.at;
	return o;
}

/* wp__json_find finds the member with a key. Two with one key are an error. */
static inline int wp__json_find(wp_json o, wp_text key, wp__member *found) {
	wp_json_cursor c = wp__json_enter(o, o.at);
	wp__member m;
	int there = 0;
	while (wp__json_next(&c, &m)) {
		if (!wp_equal(wp__json_key(o.text, m), key)) continue;
		if (there) wp__json_fail(o, m.key_at, WP_TEXT("the key occurs twice"));
		*found = m;
		there = 1;
	}
	return there;
}

/* wp__json_get finds a member that is not null, and gives its text as it stands. */
static inline int wp__json_get(wp_json o, wp_text key, wp__member *m, wp_text *raw) {
	if (!wp__json_find(o, key, m)) return 0;
	*raw = wp__json_raw(o.text, *m);
	return !wp_equal(*raw, WP_TEXT("null"));
}

/* wp_json_fail makes an error of a member, in the plugin's own words; of the object itself if the key is empty. */
static inline void wp_json_fail(wp_json o, wp_text key, wp_text message) {
	wp__member m;
	if (key.len && wp__json_find(o, key, &m)) {
		wp__json_fail(o, m.at, message);
		return;
	}
	if (key.len) message = wp_join(wp_join(key, WP_TEXT(": ")), message);
	wp__json_fail(o, o.at, message);
}

/* wp_json_has reports whether there is a member with the key that is not null. */
static inline int wp_json_has(wp_json o, wp_text key) {
	wp__member m;
	wp_text raw;
	return wp__json_get(o, key, &m, &raw);
}

/* wp_json_text gives a string. */
static inline wp_text wp_json_text(wp_json o, wp_text key, wp_text otherwise) {
	wp__member m;
	wp_text raw;
	if (!wp__json_get(o, key, &m, &raw)) return otherwise;
	if (raw.ptr[0] == '"') return wp__json_unquoted(raw);
	wp__json_refuse(o, m, WP_TEXT("a string"));
	return otherwise;
}

/* wp_json_one_of gives a string that is one of these values. */
static inline wp_text wp_json_one_of(wp_json o, wp_text key, wp_text otherwise, const wp_text *values, size_t count) {
	wp__member m;
	wp_text raw, list = WP_TEXT("");
	if (!wp__json_get(o, key, &m, &raw)) return otherwise;
	for (size_t i = 0; i < count; i++) {
		if (raw.ptr[0] == '"' && wp_equal(wp__json_unquoted(raw), values[i])) return values[i];
		if (i) list = wp_join(list, i == count - 1 ? WP_TEXT(" or ") : WP_TEXT(", "));
		list = wp_join(list, values[i]);
	}
	wp__json_refuse(o, m, list);
	return otherwise;
}

/* wp_json_int gives a whole number, written in digits alone, from least to most. */
static inline int64_t wp_json_int(wp_json o, wp_text key, int64_t least, int64_t most, int64_t otherwise) {
	wp__member m;
	wp_text raw, want;
	int64_t n;
	if (!wp__json_get(o, key, &m, &raw)) return otherwise;
	if (wp_parse_int(raw, &n) && n >= least && n <= most) return n;
	want = wp_join(WP_TEXT("a whole number from "), wp_format_int(least));
	wp__json_refuse(o, m, wp_join(wp_join(want, WP_TEXT(" to ")), wp_format_int(most)));
	return otherwise;
}

/* wp_json_bool gives true or false. */
static inline int wp_json_bool(wp_json o, wp_text key, int otherwise) {
	wp__member m;
	wp_text raw;
	if (!wp__json_get(o, key, &m, &raw)) return otherwise;
	if (wp_equal(raw, WP_TEXT("true"))) return 1;
	if (wp_equal(raw, WP_TEXT("false"))) return 0;
	wp__json_refuse(o, m, WP_TEXT("true or false"));
	return otherwise;
}

/*
 * wp_json_parsed gives what parse makes of a string, or of a number as it is written: wp_quantity_value, or a function
 * of the plugin's own. Its error becomes the member's.
 */
static inline int64_t wp_json_parsed(wp_json o, wp_text key, wp_text (*parse)(wp_text, int64_t *), int64_t otherwise) {
	wp__member m;
	wp_text raw, error;
	int64_t v = 0;
	unsigned char first;
	if (!wp__json_get(o, key, &m, &raw)) return otherwise;
	first = wp__byte(raw, 0);
	if (first != '"' && first != '-' && !wp__digit(first)) {
		wp__json_refuse(o, m, WP_TEXT("a string or a number"));
		return otherwise;
	}
	error = parse(first == '"' ? wp__json_unquoted(raw) : raw, &v);
	if (!wp_there(error)) return v;
	wp__json_fail(o, m.at, error);
	return otherwise;
}

/* wp_json_object gives an object within the object. It is not there if the member is not. */
static inline wp_json wp_json_object(wp_json o, wp_text key) {
	wp__member m;
	wp_text raw;
	wp_json within = o;
	within.at = WP__NOWHERE;
	if (!wp__json_get(o, key, &m, &raw)) return within;
	if (raw.ptr[0] == '{')
		within.at = m.at;
	else
		wp__json_refuse(o, m, WP_TEXT("an object"));
	return within;
}

static inline wp_json_cursor wp__json_list(wp_json o, wp_text key) {
	wp__member m;
	wp_text raw;
	if (!wp__json_get(o, key, &m, &raw)) return wp__json_enter(o, WP__NOWHERE);
	if (raw.ptr[0] == '[') return wp__json_enter(o, m.at);
	wp__json_refuse(o, m, WP_TEXT("a list"));
	return wp__json_enter(o, WP__NOWHERE);
}

static inline int wp__json_element(wp_json_cursor *c, wp__member *m, unsigned char first, wp_text what) {
	if (!wp__json_next(c, m)) return 0;
	if (wp__byte(c->of.text, m->at) == first) return 1;
	wp__json_refuse(c->of, *m, what);
	c->at = c->of.text.len;
	return 0;
}

/*
 * wp_json_texts goes through a list of strings, with wp_json_next_text:
 *
 *     wp_text name;
 *     wp_json_cursor c = wp_json_texts(settings, WP_TEXT("namespaces"));
 *     while (wp_json_next_text(&c, &name)) …
 */
static inline wp_json_cursor wp_json_texts(wp_json o, wp_text key) { return wp__json_list(o, key); }

static inline int wp_json_next_text(wp_json_cursor *c, wp_text *text) {
	wp__member m;
	if (!wp__json_element(c, &m, '"', WP_TEXT("a string"))) return 0;
	*text = wp__json_unquoted(wp__json_raw(c->of.text, m));
	return 1;
}

/* wp_json_objects goes through a list of objects, with wp_json_next_object. */
static inline wp_json_cursor wp_json_objects(wp_json o, wp_text key) { return wp__json_list(o, key); }

static inline int wp_json_next_object(wp_json_cursor *c, wp_json *object) {
	wp__member m;
	if (!wp__json_element(c, &m, '{', WP_TEXT("an object"))) return 0;
	*object = c->of;
	object->at = m.at;
	return 1;
}

/* wp_json_keys goes through the keys of the object, in their order, with wp_json_next_key. */
static inline wp_json_cursor wp_json_keys(wp_json o) { return wp__json_enter(o, o.at); }

static inline int wp_json_next_key(wp_json_cursor *c, wp_text *key) {
	wp__member m;
	if (!wp__json_next(c, &m)) return 0;
	*key = wp__json_key(c->of.text, m);
	return 1;
}

/* wp__json_next_member goes on among members that are not null, all of which must begin with one character. */
static inline int wp__json_next_member(wp_json_cursor *c, wp__member *m, wp_text *key, unsigned char first, wp_text what) {
	do {
		if (!wp__json_next(c, m)) return 0;
	} while (wp__byte(c->of.text, m->at) == 'n');
	*key = wp__json_key(c->of.text, *m);
	if (wp__byte(c->of.text, m->at) == first) return 1;
	wp__json_refuse(c->of, *m, what);
	c->at = c->of.text.len;
	return 0;
}

/*
 * wp_json_text_members goes through the members of the object, all of which must be strings, with wp_json_next_text_member.
 * A key that occurs twice comes twice.
 */
static inline wp_json_cursor wp_json_text_members(wp_json o) { return wp__json_enter(o, o.at); }

static inline int wp_json_next_text_member(wp_json_cursor *c, wp_text *key, wp_text *text) {
	wp__member m;
	if (!wp__json_next_member(c, &m, key, '"', WP_TEXT("a string"))) return 0;
	*text = wp__json_unquoted(wp__json_raw(c->of.text, m));
	return 1;
}

/* wp_json_object_members goes through those of an object that must be objects, with wp_json_next_object_member. */
static inline wp_json_cursor wp_json_object_members(wp_json o) { return wp__json_enter(o, o.at); }

static inline int wp_json_next_object_member(wp_json_cursor *c, wp_text *key, wp_json *object) {
	wp__member m;
	if (!wp__json_next_member(c, &m, key, '{', WP_TEXT("an object"))) return 0;
	*object = c->of;
	object->at = m.at;
	return 1;
}

/* ---- Globs ---- */

/* wp__character reads a character of a text, and returns how many bytes it has. A byte that is none stands for U+FFFD. */
static inline size_t wp__character(wp_text t, uint32_t *c) {
	unsigned char first = wp__byte(t, 0);
	size_t more = first < 0xc2 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : first < 0xf5 ? 3 : 0;
	if (t.len == 0) return 0;
	*c = first < 0x80 ? first : 0xfffd;
	if (more == 0 || t.len <= more) return 1;
	*c = first & (0x3fu >> more);
	for (size_t i = 1; i <= more; i++) *c = *c << 6 | (wp__byte(t, i) & 0x3f);
	return more + 1;
}

/* wp__class_character reads the first character of a class, and returns how long it is as it is written, 0 if it is none. */
static inline size_t wp__class_character(wp_text t, uint32_t *c) {
	size_t i = wp__byte(t, 0) == '\\', n;
	if (i == 0 && (wp__byte(t, 0) == '-' || wp__byte(t, 0) == ']')) return 0;
	n = wp__character(wp__part(t, i, t.len), c);
	return n == 0 || i + n >= t.len ? 0 : i + n; /* a class does not end with it */
}

/* wp__class returns how long the class is that a glob begins with, 0 if it is none, and whether the character is in it. */
static inline size_t wp__class(wp_text glob, uint32_t c, int *in) {
	size_t i = 1, n;
	int not_in = wp__byte(glob, i) == '^', found = 0;
	if (not_in) i++;
	for (int first = 1; first || wp__byte(glob, i) != ']'; first = 0) {
		uint32_t low = 0, high;
		if (i >= glob.len || !(n = wp__class_character(wp__part(glob, i, glob.len), &low))) return 0;
		i += n;
		high = low;
		if (wp__byte(glob, i) == '-') {
			if (!(n = wp__class_character(wp__part(glob, i + 1, glob.len), &high))) return 0;
			i += n + 1;
		}
		found = found || (low <= c && c <= high);
	}
	*in = found != not_in;
	return i + 1;
}

/* wp_glob_valid reports whether a text is a glob: each class ends and has a character, and a \ comes before something. */
static inline int wp_glob_valid(wp_text glob) {
	size_t i = 0, n;
	int in;
	while (i < glob.len) {
		n = 1;
		if (glob.ptr[i] == '\\') n = i + 1 < glob.len ? 2 : 0;
		if (glob.ptr[i] == '[') n = wp__class(wp__part(glob, i, glob.len), 0, &in);
		if (n == 0) return 0;
		i += n;
	}
	return 1;
}

/* wp__glob_one returns how much of a name the first element of a glob takes, 0 if it does not match, and how long that is. */
static inline size_t wp__glob_one(wp_text glob, wp_text name, size_t *used) {
	uint32_t c = 0;
	size_t n = wp__character(name, &c);
	int in = 0;
	*used = 1;
	switch (glob.ptr[0]) {
	case '?':
		return c == '/' ? 0 : n;
	case '[':
		*used = wp__class(glob, c, &in);
		return in ? n : 0;
	case '\\':
		*used = 2;
	}
	return glob.ptr[*used - 1] == name.ptr[0];
}

/*
 * wp_glob_match reports whether a glob matches a whole name, as the operator's match does: * stands for any run of
 * characters but /, ? for one of them, [a-z] for one of a class and [^a-z] for one that is not; \ takes the next
 * character as it is. A glob that is not valid matches nothing. It goes back no further than to the last *, so that no
 * glob takes long.
 */
static inline int wp_glob_match(wp_text glob, wp_text name) {
	size_t g = 0, n = 0, star = WP__NOWHERE, next = 0; /* what follows the last *, and what it has not taken yet */
	if (!wp_glob_valid(glob)) return 0;
	for (;;) {
		size_t used, taken;
		if (g < glob.len && glob.ptr[g] == '*') {
			star = ++g;
			next = n;
			continue;
		}
		if (g == glob.len && n == name.len) return 1;
		if (g < glob.len && n < name.len) {
			taken = wp__glob_one(wp__part(glob, g, glob.len), wp__part(name, n, name.len), &used);
			if (taken) {
				g += used;
				n += taken;
				continue;
			}
		}
		if (star == WP__NOWHERE || next == name.len || name.ptr[next] == '/') return 0;
		g = star;
		n = ++next;
	}
}

/*
 * wp_glob_accepts reports whether a list of globs accepts a name, as a list in the operator's match does: one glob matches,
 * and none of those that begin with ! does. A list of such globs alone accepts all other names; an empty list accepts everything.
 */
static inline int wp_glob_accepts(const wp_text *globs, size_t count, wp_text name) {
	int within = 0, wanted = 0;
	for (size_t i = 0; i < count; i++) {
		if (wp__byte(globs[i], 0) == '!') {
			if (wp_glob_match(wp__part(globs[i], 1, globs[i].len), name)) return 0;
			continue;
		}
		within = within || wp_glob_match(globs[i], name);
		wanted = 1;
	}
	return within || !wanted;
}

/* ---- Names of images ---- */

/* wp_image is a name of an image, with what was left out of it. */
typedef struct wp_image {
	wp_text registry;   /* with its port; docker.io if there is none */
	wp_text repository; /* library/ and the name, for a name without a path of docker.io */
	wp_text tag;        /* latest if there is neither tag nor digest, empty if there is a digest alone */
	wp_text digest;     /* such as sha256:aaaa…, empty if there is none */
	int is_short;       /* the name has no registry: CRI-O looks it up in registries.conf */
} wp_image;

static inline size_t wp__index(wp_text t, char c) {
	size_t i = 0;
	while (i < t.len && t.ptr[i] != c) i++;
	return i;
}

static inline int wp__all_hex(wp_text t) {
	for (size_t i = 0; i < t.len; i++) {
		unsigned char c = wp__byte(t, i);
		if (!wp__digit(c) && !(c >= 'a' && c <= 'f')) return 0;
	}
	return 1;
}

static inline int wp__is_digest(wp_text t) {
	size_t digits = wp_has_prefix(t, WP_TEXT("sha256:")) ? 64 : wp_has_prefix(t, WP_TEXT("sha384:")) ? 96 : 128;
	if (digits == 128 && !wp_has_prefix(t, WP_TEXT("sha512:"))) return 0;
	return t.len == 7 + digits && wp__all_hex(wp__part(t, 7, t.len));
}

/* wp_image_is_id reports whether a name is an image's id, which a user may write for an image that is there: 64
   hexadecimal digits, or a digest. */
static inline int wp_image_is_id(wp_text name) { return wp__is_digest(name) || (name.len == 64 && wp__all_hex(name)); }

static inline int wp__is_tag(wp_text t) {
	for (size_t i = 0; i < t.len; i++) {
		unsigned char c = wp__byte(t, i);
		if (wp__small(c | 0x20) || wp__digit(c) || c == '_') continue;
		if (i == 0 || (c != '.' && c != '-')) return 0;
	}
	return t.len > 0 && t.len <= 128;
}

/* wp__is_port accepts nothing, or a port after a colon. */
static inline int wp__is_port(wp_text t) {
	return t.len == 0 || (t.len > 1 && t.ptr[0] == ':' && wp__digits(t, 1) == t.len);
}

/* wp__is_registry accepts names, addresses, and addresses of IPv6 in brackets, with a port or without. */
static inline int wp__is_registry(wp_text t) {
	unsigned char before = '.', c;
	size_t i = 0, end;
	if (wp__byte(t, 0) == '[') {
		end = wp__index(t, ']');
		for (i = 1; i < end; i++) {
			c = wp__byte(t, i) | 0x20;
			if (t.ptr[i] != ':' && !wp__digit(wp__byte(t, i)) && !(c >= 'a' && c <= 'f')) return 0;
		}
		return end > 1 && end < t.len && wp__is_port(wp__part(t, end + 1, t.len));
	}
	end = wp__index(t, ':');
	for (; i < end; i++) {
		c = wp__byte(t, i);
		if (!wp__small(c | 0x20) && !wp__digit(c)) {
			if (c != '.' && c != '-') return 0;
			if (before == '.' || (c == '.' && before == '-')) return 0;
		}
		before = c;
	}
	return before != '.' && before != '-' && wp__is_port(wp__part(t, end, t.len));
}

/* wp__is_repository accepts small letters and digits, with one /, ., _ or __, or any number of -, between them. */
static inline int wp__is_repository(wp_text t) {
	size_t start = 0; /* of what is between letters and digits */
	for (size_t i = 0; i <= t.len; i++) {
		unsigned char c = wp__byte(t, i), first = wp__byte(t, start);
		size_t n = i - start, same = start;
		if (i < t.len && !wp__small(c) && !wp__digit(c)) continue;
		while (same < i && wp__byte(t, same) == first) same++;
		if (n > 0) {
			if (start == 0 || i == t.len || same < i) return 0;
			if (first != '-' && !(n == 1 && (first == '/' || first == '.' || first == '_')) && !(n == 2 && first == '_')) return 0;
		}
		start = i + 1;
	}
	return t.len > 0;
}

/* wp_image_name gives the registry and the repository. */
static inline wp_text wp_image_name(wp_image image) { return wp_join(wp_join(image.registry, WP_TEXT("/")), image.repository); }

/* wp_image_string gives the whole reference. */
static inline wp_text wp_image_string(wp_image image) {
	wp_text name = wp_image_name(image);
	if (image.tag.len) name = wp_join(wp_join(name, WP_TEXT(":")), image.tag);
	if (image.digest.len) name = wp_join(wp_join(name, WP_TEXT("@")), image.digest);
	return name;
}

/* wp__split_registry takes the registry off the repository. What is before the first slash is one if it cannot be part of a path. */
static inline void wp__split_registry(wp_image *image) {
	wp_text path = image->repository;
	size_t slash = wp__index(path, '/'), i = 0;
	wp_text host = wp__part(path, 0, slash);
	while (i < slash && host.ptr[i] != '.' && host.ptr[i] != ':' && !(host.ptr[i] >= 'A' && host.ptr[i] <= 'Z')) i++;
	image->registry = WP_TEXT("docker.io");
	image->is_short = slash == path.len || (i == slash && !wp_equal(host, WP_TEXT("localhost")));
	if (!image->is_short) {
		if (!wp_equal(host, WP_TEXT("index.docker.io"))) image->registry = host;
		image->repository = path = wp__part(path, slash + 1, path.len);
	}
	if (wp_equal(image->registry, WP_TEXT("docker.io")) && wp__index(path, '/') == path.len)
		image->repository = wp_join(WP_TEXT("library/"), path);
}

/*
 * wp_image_parse takes a name apart, as Docker, containerd and kubelet read it: nginx is docker.io/library/nginx:latest.
 * The rules are those of github.com/distribution/reference. An image's id is no name: see wp_image_is_id.
 */
static inline wp_text wp_image_parse(wp_text name, wp_image *image) {
	wp_text why = wp__none(), rest = name;
	size_t at = wp__index(name, '@'), i;
	image->digest = image->tag = WP_TEXT("");
	if (wp_image_is_id(name)) why = WP_TEXT("it is an image's id");
	if (at < name.len) {
		rest.len = at;
		image->digest = wp__part(name, at + 1, name.len);
		if (!wp_there(why) && !wp__is_digest(image->digest))
			why = WP_TEXT("its digest is not sha256:, sha384: or sha512: and hexadecimal digits of that length");
	}
	for (i = rest.len; i > 0 && rest.ptr[i - 1] != '/' && rest.ptr[i - 1] != ':'; i--) {}
	if (i > 0 && rest.ptr[i - 1] == ':') {
		image->tag = wp__part(rest, i, rest.len);
		rest.len = i - 1;
		if (!wp_there(why) && !wp__is_tag(image->tag))
			why = WP_TEXT("its tag is not 1 to 128 letters, digits, _, . and -, without . or - at its beginning");
	}
	if (image->tag.len == 0 && image->digest.len == 0) image->tag = WP_TEXT("latest");
	image->repository = rest;
	wp__split_registry(image);
	if (wp_there(why)) {
	} else if (!wp__is_registry(image->registry))
		why = WP_TEXT("its registry is not a host with an optional port");
	else if (!wp__is_repository(image->repository))
		why = WP_TEXT("its repository is not small letters and digits, with /, ., _, __ or - between them");
	else if (image->repository.len > 255)
		why = WP_TEXT("its repository has more than 255 bytes");
	if (!wp_there(why)) return why;
	return wp__quoted_error(name, wp_join(WP_TEXT("is not the name of an image: "), why));
}

/* ---- Quantities ---- */

/* wp__unit gives the powers that a suffix stands for. */
static inline int wp__unit(wp_text suffix, int64_t *tens, int64_t *twos) {
	static const char units[] = "numkMGTPE"; /* m is -3, k is 3, E is 18 */
	unsigned char c = wp__byte(suffix, 0);
	int binary = suffix.len == 2 && suffix.ptr[1] == 'i';
	*tens = *twos = 0;
	if (suffix.len == 0) return 1;
	if (suffix.len == 1 || binary) {
		for (int64_t i = 0; i < 9; i++) {
			int64_t power = i < 3 ? i - 3 : i - 2;
			if (units[i] != (binary && c == 'K' ? 'k' : (char)c)) continue;
			if (binary && (power < 1 || c == 'k')) return 0;
			*(binary ? twos : tens) = (binary ? 10 : 3) * power;
			return 1;
		}
	}
	if ((c | 0x20) != 'e') return 0;
	suffix = wp__part(suffix, 1 + (wp__byte(suffix, 1) == '+' && wp__digit(wp__byte(suffix, 2))), suffix.len);
	if (!wp_parse_int(suffix, tens)) return 0;
	if (*tens > 100) *tens = 100; /* beyond, every number is 1 or the most */
	if (*tens < -100) *tens = -100;
	return 1;
}

/* wp__scale returns number × 10^tens × 2^twos, rounded up, INT64_MAX at most. */
static inline int64_t wp__scale(uint64_t number, int64_t tens, int64_t twos) {
	uint64_t divisor = 1, whole, part, most = INT64_MAX;
	int rest = 0;
	for (; tens > 0; tens--) {
		if (number > most / 10) return INT64_MAX;
		number *= 10;
	}
	for (; tens < 0; tens++) {
		if (twos > 0) { /* 2/10 */
			twos--;
			divisor *= 5;
			continue;
		}
		rest = rest || number % 10 > 0;
		number /= 10;
	}
	whole = number / divisor;
	part = number % divisor;
	for (; twos > 0; twos--) {
		whole = (whole < most ? whole : most) * 2;
		part *= 2;
		if (part >= divisor) {
			whole++;
			part -= divisor;
		}
	}
	if (whole < most && (part > 0 || rest)) whole++;
	return (int64_t)(whole < most ? whole : most);
}

static inline wp_text wp__quantity(wp_text text, int64_t power, int64_t *out) {
	size_t start = wp__byte(text, 0) == '-' || wp__byte(text, 0) == '+', point = wp__digits(text, start), end = point, last;
	uint64_t number = 0;
	int64_t tens, twos, decimals;
	int ok;
	if (wp__byte(text, end) == '.') end = wp__digits(text, point + 1);
	ok = wp__unit(wp__part(text, end, text.len), &tens, &twos);
	if (!ok || end - start == (size_t)(end > point))
		return wp__quoted_error(text, WP_TEXT("is not a quantity such as 500m, 2Gi or 1e3"));
	for (last = end; last > point && (text.ptr[last - 1] == '0' || text.ptr[last - 1] == '.'); last--) {}
	decimals = last > point ? (int64_t)(last - point) - 1 : 0;
	for (size_t i = start; i < last; i++) {
		if (text.ptr[i] == '.') continue;
		if (number >= 1000000000000000000u || decimals > 19) return wp__quoted_error(text, WP_TEXT("has more than 19 digits"));
		number = 10 * number + (uint64_t)(text.ptr[i] - '0');
	}
	*out = wp__scale(number, tens + power - decimals, twos);
	if (text.ptr[0] == '-') *out = -*out;
	return wp__none();
}

/*
 * wp_quantity_value reads a quantity of Kubernetes, such as 2Gi or 1e3, in whole units, such as bytes. What is not whole is
 * rounded away from zero. The result is INT64_MAX at most. The rules are those of resource.Quantity of k8s.io/apimachinery,
 * but that a number has a digit, and at most 19 of them.
 */
static inline wp_text wp_quantity_value(wp_text text, int64_t *out) { return wp__quantity(text, 0, out); }

/* wp_quantity_milli reads it in thousandths, such as those of a CPU. */
static inline wp_text wp_quantity_milli(wp_text text, int64_t *out) { return wp__quantity(text, 3, out); }

/*
 * wp_quantity_decimal reads a number in digits with at most so many decimals, without a sign, a unit or an exponent, in units
 * of the last decimal: 1.25 with 4 is 12500. There are at most 18 decimals.
 */
static inline wp_text wp_quantity_decimal(wp_text text, size_t decimals, int64_t *out) {
	size_t point = wp__digits(text, 0), end = point, behind = 0;
	wp_text digits;
	if (wp__byte(text, end) == '.') {
		end = wp__digits(text, point + 1);
		behind = end - point - 1;
	}
	if (point > 0 && end == text.len && end != point + 1 && behind <= decimals) {
		digits = wp_join(wp__part(text, 0, point), wp__part(text, end - behind, end));
		digits = wp_join(digits, wp_make_text("000000000000000000", decimals - behind));
		if (wp_parse_int(digits, out)) return wp__none();
	}
	digits = wp_join(WP_TEXT("is not a number with at most "), wp_format_int((int64_t)decimals));
	return wp__quoted_error(text, wp_join(digits, WP_TEXT(" decimals")));
}

#ifdef __cplusplus
}
#endif

#endif
