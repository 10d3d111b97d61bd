/*
 * JSON text -> struct manifest. The text comes from a file that anybody may have written: it is
 * measured before json-c builds anything from it, parsed strictly, and every value is checked
 * against the type and range that the field table names. Called by the bundle's reader.
 */
#include "proto/bundle/manifest.h"

#include <errno.h>
#include <string.h>

#include <json-c/json.h>

#include "proto/base.h"
#include "proto/bundle/manifest_fields.h"

#define MAX_DEPTH 8
/* The writer gives larger numbers as strings. */
#define MAX_NUMBER (INT64_C(1) << 53)
/* An empty object costs json-c about 1 kB, an array 0.3 kB: without a limit 64 MiB of braces would
 * become tens of GiB. The rest of the objects is for keys of later versions. */
#define MAX_OBJECTS                                                                              \
	(MANIFEST_MAX_CPUS + MANIFEST_MAX_PROCESSES + MANIFEST_MAX_IMAGES + MANIFEST_MAX_NOTES + \
	 MANIFEST_MAX_TEXTS + 64u)
#define MAX_ARRAYS  64u
#define MAX_MEMBERS (13u * MAX_OBJECTS)

/* What a JSON text is made of, counted without parsing it. */
struct shape {
	size_t objects;
	size_t arrays;
	size_t members;
	size_t commas;
};

/* The position after the string that begins before I. */
static size_t skip_string(const char *text, size_t size, size_t i)
{
	while (i < size && text[i] != '"')
		i += text[i] == '\\' ? 2 : 1;
	return i + 1;
}

static void measure(const char *text, size_t size, struct shape *ret)
{
	*ret = (struct shape){0};
	for (size_t i = 0; i < size;) {
		char c = text[i++];

		if (c == '"')
			i = skip_string(text, size, i);
		ret->objects += c == '{';
		ret->arrays += c == '[';
		ret->members += c == ':';
		ret->commas += c == ',';
	}
}

static size_t count_members(struct json_object *o);

static size_t count_in_array(struct json_object *o)
{
	size_t n = 0;

	for (size_t i = 0; i < json_object_array_length(o); i++)
		n += count_members(json_object_array_get_idx(o, i));
	return n;
}

/* Recursion is bounded by MAX_DEPTH. */
static size_t count_members(struct json_object *o)
{
	size_t n = 0;

	if (json_object_is_type(o, json_type_array))
		return count_in_array(o);
	if (!json_object_is_type(o, json_type_object))
		return 0;
	json_object_object_foreach(o, key, value)
	{
		(void)key;
		n += 1 + count_members(value);
	}
	return n;
}

static int parse_tree(struct json_tokener *tok, const char *text, size_t size,
		      struct json_object **ret)
{
	struct json_object *o = json_tokener_parse_ex(tok, text, (int)size);
	enum json_tokener_error e = json_tokener_get_error(tok);

	if (e == json_tokener_success && o && json_tokener_get_parse_end(tok) == size) {
		*ret = o;
		return 0;
	}
	json_object_put(o);
	return -EBADMSG;
}

static void put_tree(struct json_object **o)
{
	json_object_put(*o);
}

/* An object without duplicate keys: json-c keeps the last of them, so that the tree then has fewer
 * members than the text had colons. */
static int parse_text(const char *text, size_t size, struct json_object **ret)
{
	CLEANUP(put_tree) struct json_object *o = NULL;
	struct json_tokener *tok;
	struct shape shape;
	int r;

	measure(text, size, &shape);
	if (shape.objects > MAX_OBJECTS || shape.arrays > MAX_ARRAYS ||
	    shape.members > MAX_MEMBERS || shape.commas > MAX_MEMBERS + MAX_OBJECTS)
		return -EBADMSG;
	tok = json_tokener_new_ex(MAX_DEPTH);
	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	r = parse_tree(tok, text, size, &o);
	json_tokener_free(tok);
	if (r < 0)
		return r;
	if (!json_object_is_type(o, json_type_object) || count_members(o) != shape.members)
		return -EBADMSG;
	*ret = TAKE_PTR(o);
	return 0;
}

static int digit(char c, unsigned base)
{
	int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

	return v < (int)base ? v : -1;
}

/* Decimal, or 0x and lower-case digits; nothing around them. */
static int parse_digits(const char *s, size_t size, uint64_t *ret)
{
	unsigned base = 10;
	uint64_t v = 0;

	if (size > 2 && s[0] == '0' && s[1] == 'x') {
		base = 16;
		s += 2;
		size -= 2;
	}
	for (size_t i = 0; i < size; i++) {
		int d = digit(s[i], base);

		if (d < 0 || __builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (unsigned)d, &v))
			return -EBADMSG;
	}
	*ret = v;
	return size > 0 ? 0 : -EBADMSG;
}

static int parse_number(struct json_object *o, uint64_t *ret)
{
	int64_t v;

	if (json_object_is_type(o, json_type_string))
		return parse_digits(json_object_get_string(o),
				    (size_t)json_object_get_string_len(o), ret);
	if (!json_object_is_type(o, json_type_int))
		return -EBADMSG;
	v = json_object_get_int64(o);
	if (v < 0 || v > MAX_NUMBER)
		return -EBADMSG;
	*ret = (uint64_t)v;
	return 0;
}

static void store(const struct manifest_field *f, uint64_t v, void *at)
{
	if (f->type == MANIFEST_U16)
		*(uint16_t *)at = (uint16_t)v;
	else if (f->type == MANIFEST_U32)
		*(uint32_t *)at = (uint32_t)v;
	else
		*(uint64_t *)at = v;
}

static int read_number(const struct manifest_field *f, struct json_object *o, void *at)
{
	uint64_t v;
	int r;

	r = parse_number(o, &v);
	if (r < 0)
		return r;
	if (v > f->max)
		return -EBADMSG;
	store(f, v, at);
	return 0;
}

static int read_string(struct json_object *o, void *at)
{
	const char *s;
	char *copy;

	if (!json_object_is_type(o, json_type_string))
		return -EBADMSG;
	s = json_object_get_string(o);
	if (strlen(s) != (size_t)json_object_get_string_len(o))
		return -EBADMSG; /* a NUL inside */
	copy = strdup(s);
	if (!copy)
		return -ENOMEM;
	*(char **)at = copy;
	return 0;
}

static int read_bool(struct json_object *o, void *at)
{
	if (!json_object_is_type(o, json_type_boolean))
		return -EBADMSG;
	*(bool *)at = json_object_get_boolean(o);
	return 0;
}

static int read_absent(const struct manifest_field *f, void *at)
{
	if (!f->nullable)
		return -EBADMSG;
	if (f->type == MANIFEST_BOOL)
		*(bool *)at = false;
	else if (f->type != MANIFEST_STRING)
		store(f, f->absent, at);
	return 0;
}

static int read_field(const struct manifest_field *f, struct json_object *object, void *target)
{
	void *at = (char *)target + f->offset;
	struct json_object *o;

	if (!json_object_object_get_ex(object, f->key, &o) || !o)
		return read_absent(f, at);
	switch (f->type) {
	case MANIFEST_STRING: return read_string(o, at);
	case MANIFEST_BOOL: return read_bool(o, at);
	default: return read_number(f, o, at);
	}
}

static int read_fields(const struct manifest_field *fields, size_t n_fields,
		       struct json_object *object, void *target)
{
	int r = 0;

	if (!json_object_is_type(object, json_type_object))
		return -EBADMSG;
	for (size_t i = 0; i < n_fields && r == 0; i++)
		r = read_field(&fields[i], object, target);
	return r;
}

static int read_group(const struct manifest_group *g, struct json_object *root, struct manifest *m)
{
	struct json_object *o = root;

	if (g->key && !json_object_object_get_ex(root, g->key, &o))
		return -EBADMSG;
	if (g->have != MANIFEST_ALWAYS) {
		*(bool *)((char *)m + g->have) = o;
		if (!o)
			return 0;
	}
	return read_fields(g->fields, g->n_fields, o, m);
}

static int read_list(enum manifest_list_id id, struct json_object *root, struct manifest *m)
{
	const struct manifest_list *l = &manifest_lists[id];
	struct json_object *array;
	void *element;
	size_t n;
	int r = 0;

	if (!json_object_object_get_ex(root, l->key, &array))
		return l->optional ? 0 : -EBADMSG;
	if (!json_object_is_type(array, json_type_array))
		return -EBADMSG;
	n = json_object_array_length(array);
	if (n > l->max)
		return -EBADMSG;
	for (size_t i = 0; i < n && r == 0; i++) {
		element = manifest_add_element(m, id);
		if (!element)
			return -ENOMEM;
		r = read_fields(l->fields, l->n_fields, json_object_array_get_idx(array, i),
				element);
	}
	return r;
}

static int read_version(struct json_object *root)
{
	struct json_object *o;
	uint64_t version;
	int r;

	if (!json_object_object_get_ex(root, MANIFEST_VERSION_KEY, &o))
		return -EBADMSG;
	r = parse_number(o, &version);
	if (r < 0)
		return r;
	if (version > MANIFEST_VERSION)
		return -EPROTONOSUPPORT;
	return version == MANIFEST_VERSION ? 0 : -EBADMSG;
}

/* Whole bytes, as many as perf records have room for. */
static bool is_build_id(const char *s)
{
	size_t size = strlen(s);

	return size > 0 && size % 2 == 0 && size <= MANIFEST_MAX_BUILD_ID &&
	       strspn(s, "0123456789abcdef") == size;
}

static bool image_is_sound(const struct manifest_image *image)
{
	if ((image->missing || image->elsewhere) && image->size > 0)
		return false;
	if (image->missing && image->elsewhere)
		return false;
	/* What lies in pieces lies in a file of a known size. */
	if (image->pieces && (image->offset > 0 || image->file_size == MANIFEST_ABSENT))
		return false;
	return !image->build_id || is_build_id(image->build_id);
}

/* What no single field shows. */
static int check_lists(const struct manifest *m)
{
	bool seen[MANIFEST_MAX_CPUS] = {false};

	for (size_t i = 0; i < m->n_cpus; i++) {
		const struct manifest_cpu *cpu = &m->cpus[i];

		/* A thread's trace is of all CPUs, a CPU's of all threads. */
		if ((cpu->cpu == MANIFEST_ANY) == (cpu->tid == MANIFEST_ANY))
			return -EBADMSG;
		if (cpu->cpu == MANIFEST_ANY)
			continue;
		if (seen[cpu->cpu])
			return -EBADMSG;
		seen[cpu->cpu] = true;
	}
	for (size_t i = 0; i < m->n_images; i++)
		if (!image_is_sound(&m->images[i]))
			return -EBADMSG;
	return 0;
}

static int read_tree(struct json_object *root, struct manifest *m)
{
	int r;

	r = read_version(root);
	for (size_t i = 0; i < MANIFEST_N_GROUPS && r == 0; i++)
		r = read_group(&manifest_groups[i], root, m);
	for (unsigned id = 0; id < MANIFEST_N_LISTS && r == 0; id++)
		r = read_list(id, root, m);
	return r < 0 ? r : check_lists(m);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int manifest_read(const void *text, size_t size, struct manifest *m)
{
	CLEANUP(put_tree) struct json_object *root = NULL;
	const char *s = text;
	int r;

	/* json-c's strict mode refuses even white space behind the value. */
	while (size > 0 && is_blank(s[size - 1]))
		size--;
	if (size == 0 || size > MANIFEST_MAX_TEXT || memchr(s, 0, size))
		return -EBADMSG;
	r = parse_text(s, size, &root);
	if (r == 0)
		r = read_tree(root, m);
	if (r < 0)
		manifest_done(m);
	return r;
}
