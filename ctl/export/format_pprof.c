/*
 * pprof's profile: a sample for each different stack of each thread, with the number of calls,
 * instructions, and nanoseconds; compressed, as the format demands.
 *
 * Field numbers are those of proto/profile.proto in pprof's repository. A function is one location.
 */
#include "ctl/export/export_private.h"

/* Profile */
#define PROFILE_TYPE	 1u
#define PROFILE_SAMPLE	 2u
#define PROFILE_MAPPING	 3u
#define PROFILE_LOCATION 4u
#define PROFILE_FUNCTION 5u
#define PROFILE_STRING	 6u
#define PROFILE_DURATION 10u
#define PROFILE_DEFAULT	 14u
/* ValueType */
#define TYPE_TYPE 1u
#define TYPE_UNIT 2u
/* Sample, Label */
#define SAMPLE_LOCATION 1u
#define SAMPLE_VALUE	2u
#define SAMPLE_LABEL	3u
#define LABEL_KEY	1u
#define LABEL_STRING	2u
#define LABEL_NUMBER	3u
/* Mapping */
#define MAPPING_ID	  1u
#define MAPPING_LIMIT	  3u
#define MAPPING_FILE	  5u
#define MAPPING_FUNCTIONS 7u
/* Location, Line */
#define LOCATION_ID	 1u
#define LOCATION_MAPPING 2u
#define LOCATION_ADDRESS 3u
#define LOCATION_LINE	 4u
#define LINE_FUNCTION	 1u
#define LINE_LINE	 2u
/* Function */
#define FUNCTION_ID   1u
#define FUNCTION_NAME 2u
#define FUNCTION_FILE 4u
#define FUNCTION_LINE 5u

/* The strings begin with these; the names of the exporter follow, without their first, which is "".
 */
enum { S_NONE, S_CALLS, S_COUNT, S_INSNS, S_CPU, S_NS, S_WALL, S_THREAD, S_TID, S_PID, STRINGS };
static const char *const strings[STRINGS] = {
	"", "calls", "count", "instructions", "cpu", "nanoseconds", "wall", "thread", "tid", "pid"};

static uint64_t string_of(uint32_t name)
{
	return name == 0 ? S_NONE : STRINGS - 1 + (uint64_t)name;
}

static int write_string(struct exporter *e, const char *text)
{
	uint8_t head[11] = {PROFILE_STRING << 3 | 2};
	size_t n = 1, size = strlen(text);

	for (size_t left = size;; left >>= 7) {
		head[n++] = (uint8_t)((left & 127) | (left > 127 ? 128 : 0));
		if (left <= 127)
			break;
	}
	out_block(&e->out, head, n);
	out_block(&e->out, text, size);
	return e->out.error;
}

static int write_strings(struct exporter *e)
{
	int r = 0;

	for (size_t i = 0; i < STRINGS && r == 0; i++)
		r = write_string(e, strings[i]);
	for (uint32_t i = 1; i < e->names.n && r == 0; i++)
		r = write_string(e, e->names.list[i]);
	return r;
}

static int write_types(struct exporter *e, struct bytes_out *m)
{
	static const uint8_t types[][2] = {
		{S_CALLS, S_COUNT}, {S_INSNS, S_COUNT}, {S_CPU, S_NS}, {S_WALL, S_NS}};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(types) && r == 0; i++) {
		pb_number(m, TYPE_TYPE, types[i][0]);
		pb_number(m, TYPE_UNIT, types[i][1]);
		r = pb_write(&e->out, PROFILE_TYPE, m);
	}
	return r;
}

/* The id of an image's mapping is the number of its name; 0 is none. */
static int write_mappings(struct exporter *e, struct bytes_out *m)
{
	CLEANUP_FREE bool *written = calloc(e->names.n, 1);
	int r = 0;

	if (!written)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->n_functions && r == 0; i++) {
		uint32_t image = e->functions[i].image;

		if (image == 0 || written[image])
			continue;
		written[image] = true;
		pb_number(m, MAPPING_ID, image);
		pb_number(m, MAPPING_LIMIT, UINT64_MAX);
		pb_number(m, MAPPING_FILE, string_of(image));
		pb_number(m, MAPPING_FUNCTIONS, 1);
		r = pb_write(&e->out, PROFILE_MAPPING, m);
	}
	return r;
}

/* Location and function I have the id I + 1. */
static int write_function(struct exporter *e, struct bytes_out *m, uint32_t i)
{
	const struct export_function *f = &e->functions[i];
	size_t line;
	int r;

	pb_number(m, LOCATION_ID, (uint64_t)i + 1);
	pb_number(m, LOCATION_MAPPING, f->image);
	pb_number(m, LOCATION_ADDRESS, f->address);
	line = pb_begin(m, LOCATION_LINE);
	pb_number(m, LINE_FUNCTION, (uint64_t)i + 1);
	pb_number(m, LINE_LINE, f->line);
	pb_end(m, line);
	r = pb_write(&e->out, PROFILE_LOCATION, m);
	if (r < 0)
		return r;
	pb_number(m, FUNCTION_ID, (uint64_t)i + 1);
	pb_number(m, FUNCTION_NAME,
		  string_of(f->name ? f->name : e->functions[FUNCTION_UNKNOWN].name));
	pb_number(m, FUNCTION_FILE, string_of(f->file));
	pb_number(m, FUNCTION_LINE, f->line);
	return pb_write(&e->out, PROFILE_FUNCTION, m);
}

static void put_label(struct bytes_out *m, uint32_t key, uint32_t field, uint64_t v)
{
	size_t label = pb_begin(m, SAMPLE_LABEL);

	pb_number(m, LABEL_KEY, key);
	pb_number(m, field, v);
	pb_end(m, label);
}

static int write_sample(struct exporter *e, struct bytes_out *m, const struct stack_node *n)
{
	const struct stacks *s = e->own;
	const uint64_t values[] = {n->calls, n->insns, n->cpu_ns, n->wall_ns};
	const struct stack_node *at = n;
	const struct export_thread *t;

	/* The innermost frame comes first. */
	for (; at->parent != STACK_NONE; at = &s->list[at->parent])
		pb_number(m, SAMPLE_LOCATION, (uint64_t)at->function + 1);
	t = e->threads[at->function];
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		pb_number(m, SAMPLE_VALUE, values[i]);
	put_label(m, S_THREAD, LABEL_STRING, string_of(t->name));
	put_label(m, S_TID, LABEL_NUMBER, t->tid);
	put_label(m, S_PID, LABEL_NUMBER, t->pid);
	return pb_write(&e->out, PROFILE_SAMPLE, m);
}

static int write_samples(struct exporter *e, struct bytes_out *m)
{
	const struct stacks *s = e->own;
	int r = 0;

	for (uint32_t i = 0; i < s->n && r == 0; i++)
		if (s->list[i].parent != STACK_NONE && s->list[i].calls > 0)
			r = write_sample(e, m, &s->list[i]);
	return r;
}

/* The two numbers of the profile itself. */
static void write_numbers(struct exporter *e, struct bytes_out *m)
{
	pb_number(m, PROFILE_DURATION, e->until - e->first);
	pb_number(m, PROFILE_DEFAULT, S_CPU);
	out_block(&e->out, m->data, m->size);
	bytes_out_reset(m);
}

static int finish(struct exporter *e)
{
	struct bytes_out m;
	int r = out_compress(&e->out);

	if (r < 0)
		return r;
	/* Enough for the numbers of EXPORT_MAX_DEPTH frames. */
	bytes_out_init(&m, 65536);
	r = write_types(e, &m);
	if (r == 0)
		r = write_mappings(e, &m);
	for (uint32_t i = 0; i < e->n_functions && r == 0; i++)
		r = write_function(e, &m, i);
	if (r == 0)
		r = write_samples(e, &m);
	if (r == 0)
		write_numbers(e, &m);
	bytes_out_done(&m);
	return r < 0 ? r : write_strings(e);
}

const struct export_ops pprof_ops = {
	.start = stacks_start,
	.thread = stacks_thread,
	.begin = stacks_begin,
	.end = stacks_end,
	.finish = finish,
	.done = stacks_done,
};
