/*
 * The manifest as JSON text: written as a stream, and read by the same table of keys.
 *
 * The text that is read may come from a stranger. It is measured before json-c allocates anything
 * for it, parsed strictly, and every value is checked against the type and range of the table.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include <json-c/json.h>

#include "proto/base.h"
#include "proto/bundle/manifest.h"
#include "proto/bundle/manifest_private.h"
#include "proto/json.h"

static uint64_t number(const void *at, enum manifest_type type)
{
	switch (type) {
	case MANIFEST_U16: return *(const uint16_t *)at;
	case MANIFEST_U32: return *(const uint32_t *)at;
	default: return *(const uint64_t *)at;
	}
}

static void write_field(struct json_writer *w, const struct manifest_field *f, const void *at)
{
	const char *text;
	uint64_t v;

	switch (f->type) {
	case MANIFEST_STRING:
		text = *(char *const *)at;
		if (text || !f->quiet)
			json_string(w, f->key, text || f->nullable ? text : "");
		return;
	case MANIFEST_BOOL:
		if (*(const bool *)at || !f->quiet)
			json_boolean(w, f->key, *(const bool *)at);
		return;
	default:
		v = number(at, f->type);
		if (f->nullable && v == f->absent) {
			if (!f->quiet)
				json_null(w, f->key);
		} else if (f->type == MANIFEST_HEX) {
			json_hex(w, f->key, v);
		} else {
			json_u64(w, f->key, v);
		}
	}
}

static void write_fields(struct json_writer *w, const void *object,
			 const struct manifest_field *fields, size_t n_fields)
{
	for (size_t i = 0; i < n_fields; i++)
		write_field(w, &fields[i], (const char *)object + fields[i].offset);
}

static void write_list(struct json_writer *w, const struct manifest *m, enum manifest_list_id id)
{
	const struct manifest_list *l = &manifest_lists[id];
	size_t n;
	const char *elements = manifest_elements(m, id, &n);

	if (l->optional && n == 0)
		return;
	json_begin_array(w, l->key);
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w, NULL);
		write_fields(w, elements + i * l->element_size, l->fields, l->n_fields);
		json_end_object(w);
	}
	json_end_array(w);
}

int manifest_write(const struct manifest *m, struct bytes_out *out)
{
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	int r;

	r = json_writer_new_bytes(out, true, &w);
	if (r < 0)
		return r;
	json_begin_object(w, NULL);
	json_u64(w, MANIFEST_VERSION_KEY, MANIFEST_VERSION);
	for (size_t i = 0; i < MANIFEST_N_GROUPS; i++) {
		const struct manifest_group *g = &manifest_groups[i];

		if (g->have != MANIFEST_ALWAYS && !*(const bool *)((const char *)m + g->have)) {
			json_null(w, g->key);
			continue;
		}
		if (g->key)
			json_begin_object(w, g->key);
		write_fields(w, m, g->fields, g->n_fields);
		if (g->key)
			json_end_object(w);
	}
	for (unsigned id = 0; id < MANIFEST_N_LISTS; id++)
		write_list(w, m, id);
	json_end_object(w);
	return json_writer_finish(w);
}

#define MAX_DEPTH 8
/* The writer writes larger numbers as strings. */
#define MAX_NUMBER (INT64_C(1) << 53)
/* An empty object costs json-c about 1 kB, an array 0.3 kB: without limits 64 MiB of braces would
 * need tens of GiB. The 64 objects more are for keys of later versions. */
#define MAX_OBJECTS                                                                              \
	(MANIFEST_MAX_CPUS + MANIFEST_MAX_PROCESSES + MANIFEST_MAX_IMAGES + MANIFEST_MAX_NOTES + \
	 MANIFEST_MAX_TEXTS + MANIFEST_MAX_SEAMS + 64u)
#define MAX_ARRAYS  64u
#define MAX_MEMBERS (13u * MAX_OBJECTS)

/* Counts of a JSON text, made without parsing it. */
struct shape {
	size_t objects;
	size_t arrays;
	size_t members;
	size_t commas;
};

static void measure(const char *text, size_t size, struct shape *ret)
{
	*ret = (struct shape){0};
	for (size_t i = 0; i < size;) {
		char c = text[i++];

		/* The content of a string does not count. */
		if (c == '"') {
			while (i < size && text[i] != '"')
				i += text[i] == '\\' ? 2 : 1;
			i++;
		}
		ret->objects += c == '{';
		ret->arrays += c == '[';
		ret->members += c == ':';
		ret->commas += c == ',';
	}
}

/* Counts the members of O and of all objects within. MAX_DEPTH bounds the recursion. */
static size_t count_members(struct json_object *o)
{
	size_t n = 0;

	if (json_object_is_type(o, json_type_array))
		for (size_t i = 0; i < json_object_array_length(o); i++)
			n += count_members(json_object_array_get_idx(o, i));
	if (!json_object_is_type(o, json_type_object))
		return n;
	json_object_object_foreach(o, key, value)
	{
		(void)key;
		n += 1 + count_members(value);
	}
	return n;
}

static void put_tree(struct json_object **o)
{
	json_object_put(*o);
}

/* Parses an object without duplicate keys. json-c keeps the last of these, and the tree then has
 * fewer members than the text has colons. */
static int parse_text(const char *text, size_t size, struct json_object **ret)
{
	CLEANUP(put_tree) struct json_object *o = NULL;
	struct json_tokener *tok;
	struct shape shape;
	bool good;

	measure(text, size, &shape);
	if (shape.objects > MAX_OBJECTS || shape.arrays > MAX_ARRAYS ||
	    shape.members > MAX_MEMBERS || shape.commas > MAX_MEMBERS + MAX_OBJECTS)
		return -EBADMSG;
	tok = json_tokener_new_ex(MAX_DEPTH);
	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	o = json_tokener_parse_ex(tok, text, (int)size);
	good = json_tokener_get_error(tok) == json_tokener_success && o &&
	       json_tokener_get_parse_end(tok) == size;
	json_tokener_free(tok);
	if (!good || !json_object_is_type(o, json_type_object) || count_members(o) != shape.members)
		return -EBADMSG;
	*ret = TAKE_PTR(o);
	return 0;
}

/* Parses S: decimal, or 0x and lower-case digits. */
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
		unsigned d = s[i] >= '0' && s[i] <= '9'	  ? (unsigned)(s[i] - '0')
			     : s[i] >= 'a' && s[i] <= 'f' ? (unsigned)(s[i] - 'a') + 10
							  : UINT32_MAX;

		if (d >= base || __builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, d, &v))
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

/* Sets the number at AT, of the type of F. */
static void store(const struct manifest_field *f, uint64_t v, void *at)
{
	if (f->type == MANIFEST_U16)
		*(uint16_t *)at = (uint16_t)v;
	else if (f->type == MANIFEST_U32)
		*(uint32_t *)at = (uint32_t)v;
	else
		*(uint64_t *)at = v;
}

static int read_string(struct json_object *o, void *at)
{
	const char *s;
	char *copy;

	if (!json_object_is_type(o, json_type_string))
		return -EBADMSG;
	s = json_object_get_string(o);
	if (strlen(s) != (size_t)json_object_get_string_len(o))
		return -EBADMSG; /* a NUL within */
	copy = strdup(s);
	if (!copy)
		return -ENOMEM;
	*(char **)at = copy;
	return 0;
}

static int read_field(const struct manifest_field *f, struct json_object *object, void *target)
{
	void *at = (char *)target + f->offset;
	struct json_object *o;
	uint64_t v;
	int r;

	if (!json_object_object_get_ex(object, f->key, &o) || !o) {
		if (!f->nullable)
			return -EBADMSG;
		if (f->type == MANIFEST_BOOL)
			*(bool *)at = false;
		else if (f->type != MANIFEST_STRING)
			store(f, f->absent, at);
		return 0;
	}
	switch (f->type) {
	case MANIFEST_STRING: return read_string(o, at);
	case MANIFEST_BOOL:
		if (!json_object_is_type(o, json_type_boolean))
			return -EBADMSG;
		*(bool *)at = json_object_get_boolean(o);
		return 0;
	default:
		r = parse_number(o, &v);
		if (r < 0)
			return r;
		if (v > f->max)
			return -EBADMSG;
		store(f, v, at);
		return 0;
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

static bool is_valid_image(const struct manifest_image *image)
{
	const char *id = image->build_id;
	size_t digits = id ? strlen(id) : 0;

	if ((image->missing || image->elsewhere) && image->size > 0)
		return false;
	if (image->missing && image->elsewhere)
		return false;
	/* Pieces need the size of their file. */
	if (image->pieces && (image->offset > 0 || image->file_size == MANIFEST_ABSENT))
		return false;
	/* A build id has whole bytes, at most as many as perf records have room for. */
	return !id || (digits > 0 && digits % 2 == 0 && digits <= MANIFEST_MAX_BUILD_ID &&
		       strspn(id, "0123456789abcdef") == digits);
}

/* Whether each seam lies within a trace and behind the seam before it. */
static bool are_valid_seams(const struct manifest *m)
{
	for (size_t i = 0; i < m->n_seams; i++) {
		const struct manifest_seam *s = &m->seams[i], *last = i > 0 ? s - 1 : NULL;

		if (s->trace >= m->n_cpus || s->offset == 0 || s->offset >= m->cpus[s->trace].bytes)
			return false;
		if (last && (last->trace > s->trace ||
			     (last->trace == s->trace && last->offset >= s->offset)))
			return false;
	}
	return true;
}

/* Checks rules about several fields. */
static int check_lists(const struct manifest *m)
{
	bool seen[MANIFEST_MAX_CPUS] = {false};

	for (size_t i = 0; i < m->n_cpus; i++) {
		const struct manifest_cpu *cpu = &m->cpus[i];

		/* A thread's trace is of all CPUs, and a CPU's trace is of all threads. */
		if ((cpu->cpu == MANIFEST_ANY) == (cpu->tid == MANIFEST_ANY))
			return -EBADMSG;
		if (cpu->cpu == MANIFEST_ANY)
			continue;
		if (seen[cpu->cpu])
			return -EBADMSG;
		seen[cpu->cpu] = true;
	}
	for (size_t i = 0; i < m->n_images; i++)
		if (!is_valid_image(&m->images[i]))
			return -EBADMSG;
	return are_valid_seams(m) ? 0 : -EBADMSG;
}

static int read_tree(struct json_object *root, struct manifest *m)
{
	int r;

	r = read_version(root);
	for (size_t i = 0; i < MANIFEST_N_GROUPS && r == 0; i++) {
		const struct manifest_group *g = &manifest_groups[i];
		struct json_object *o = root;

		if (g->key && !json_object_object_get_ex(root, g->key, &o))
			return -EBADMSG;
		if (g->have != MANIFEST_ALWAYS) {
			*(bool *)((char *)m + g->have) = o;
			if (!o)
				continue;
		}
		r = read_fields(g->fields, g->n_fields, o, m);
	}
	for (unsigned id = 0; id < MANIFEST_N_LISTS && r == 0; id++)
		r = read_list(id, root, m);
	return r < 0 ? r : check_lists(m);
}

int manifest_read(const void *text, size_t size, struct manifest *m)
{
	CLEANUP(put_tree) struct json_object *root = NULL;
	const char *s = text;
	int r;

	assert(!m->id && m->n_cpus == 0 && m->n_images == 0);
	/* json-c's strict mode refuses white space behind the value. */
	while (size > 0 && s[size - 1] && strchr(" \t\n\r", s[size - 1]))
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
