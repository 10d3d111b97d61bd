/*
 * ptsnapctl calls: the calls of a snapshot, one a line, indented, with times and durations.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/progress.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"
#include "ctl/calls/calls.h"
#include "ctl/calls/gaps.h"
#include "ctl/calls/order.h"
#include "ctl/calls/slice.h"
#include "ctl/show/pager.h"
#include "ctl/show/show.h"

#define MAX_LAST   1000000u
#define MAX_INDENT 60u	   /* calls further in are indented no more */
#define DONE	   INT_MIN /* no errno, no exit code */

/* On a terminal, lines are as wide as the terminal. */
#define WIDE	   120u /* columns from which on a line has the thread's name */
#define LEAST_NAME 12u	/* columns of a name that is far in */

struct request {
	struct settings *settings;
	struct calls_source source;
	struct slice slice;
	struct order order;
	struct gaps gaps;
	uint64_t last, limit; /* 0: all */
	struct show_style style;
	struct pager pager;
	bool terminal, no_pager;
	uint64_t n, n_calls;	   /* printed: lines, and calls of them */
	struct order_call *newest; /* owned; a ring of the last ones, with --last */
	uint64_t n_newest;
};

/* --- The command line --- */

enum {
	OPTION_THREAD = OPTION_OWN,
	OPTION_LONGER_THAN,
	OPTION_LAST,
	OPTION_LIMIT,
	OPTION_DEPTH,
	OPTION_NO_PAGER,
	OPTION_SOURCE,				       /* the first of SOURCE_OPTIONS */
	OPTION_SLICE = OPTION_SOURCE + SOURCE_OPTIONS, /* the first of SLICE_OPTIONS */
};

static const struct option OPTIONS[] = {
	{"thread", required_argument, NULL, OPTION_THREAD},
	{"longer-than", required_argument, NULL, OPTION_LONGER_THAN},
	{"last", required_argument, NULL, OPTION_LAST},
	{"limit", required_argument, NULL, OPTION_LIMIT},
	{"depth", required_argument, NULL, OPTION_DEPTH},
	{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
};

static int take_depth(struct request *q)
{
	uint64_t depth = 0;
	int r = option_count("--depth", optarg, UINT32_MAX - 1, &depth);

	if (r == 0)
		q->order.depth = (uint32_t)depth;
	return r;
}

static int take_longer_than(struct request *q)
{
	uint64_t usec = 0;
	int r = size_parse_time(optarg, &usec);

	if (r == 0 && __builtin_mul_overflow(usec, UINT64_C(1000), &q->order.longer_than))
		r = -ERANGE;
	return option_good(r, "--longer-than", optarg, TIME_VALID) ? 0 : EXIT_CODE_USAGE;
}

static int take(struct request *q, int option)
{
	switch (option) {
	case OPTION_THREAD: return slice_option_take(&q->slice, SLICE_TID, optarg);
	case OPTION_LONGER_THAN: return take_longer_than(q);
	case OPTION_LAST: return option_count("--last", optarg, MAX_LAST, &q->last);
	case OPTION_LIMIT: return option_count("--limit", optarg, UINT64_MAX, &q->limit);
	case OPTION_DEPTH: return take_depth(q);
	case OPTION_NO_PAGER: q->no_pager = true; return 0;
	}
	if (option < OPTION_SLICE)
		return source_option_take(&q->source, (size_t)(option - OPTION_SOURCE), optarg);
	return slice_option_take(&q->slice, (size_t)(option - OPTION_SLICE), optarg);
}

static int parse(struct request *q, int argc, char **argv)
{
	struct option own[ARRAY_SIZE(OPTIONS) + SOURCE_OPTIONS + SLICE_OPTIONS + 1] = {{0}};
	int option, r;

	memcpy(own, OPTIONS, sizeof(OPTIONS));
	source_option_table(own + ARRAY_SIZE(OPTIONS), OPTION_SOURCE);
	slice_option_table(own + ARRAY_SIZE(OPTIONS) + SOURCE_OPTIONS, OPTION_SLICE);
	while ((option = option_next(q->settings, argc, argv, own, "", true)) != OPTION_END) {
		r = option == OPTION_USAGE ? EXIT_CODE_USAGE : take(q, option);
		if (r != 0)
			return r;
	}
	if (q->settings->help || q->settings->version)
		return 0;
	if (q->last > 0 && q->limit > 0)
		return say_error(EXIT_CODE_USAGE,
				 "either --last (the last calls) or --limit (the first ones)");
	q->source.settings = q->settings;
	q->source.operand = option_operand(
		argc, argv, "an ID of `ptsnapctl list', latest, a bundle's file or a perf.data");
	return q->source.operand ? 0 : EXIT_CODE_USAGE;
}

/* --- One call --- */

static const char *name_of(const struct request *q, const struct order_call *c)
{
	if (c->gap)
		return q->order.gaps[c->function];
	if (c->function != 0)
		return order_function(&q->order, c->function)->name;
	if (c->how == CALLSTREAM_SYSCALL)
		return "[system call]";
	return c->how == CALLSTREAM_INTERRUPT ? "[interrupt]" : "[unknown]";
}

/* The time since the trigger, or since the begin of the trace if there is none. */
static int64_t time_of(const struct request *q, const struct order_call *c)
{
	uint64_t zero = q->order.trigger ? q->order.trigger : q->order.first;

	return (int64_t)(c->begin + c->begin_width / 2 - zero);
}

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	json_object_object_add(o, key, value);
}

static void add_thread(const struct request *q, struct json_object *o, uint32_t thread)
{
	const struct order_thread *t = order_thread(&q->order, thread);

	add(o, "pid", thread ? json_object_new_uint64(t->pid) : NULL);
	add(o, "tid", thread ? json_object_new_uint64(t->tid) : NULL);
	add(o, "comm", thread ? json_object_new_string(t->name) : NULL);
}

/* Inlined functions have no branches that would say when they begin and end. */
static bool is_measured(const struct order_call *c)
{
	return c->gap || c->how != CALLSTREAM_INLINED;
}

static void print_json(struct request *q, const struct order_call *c)
{
	struct json_object *o = json_object_new_object();
	uint64_t uncertain, took = order_duration(c, &uncertain);
	const char *image =
		c->function && !c->gap ? order_function(&q->order, c->function)->image : NULL;

	add(o, "atNSec", json_object_new_int64(time_of(q, c)));
	add_thread(q, o, c->thread);
	add(o, "cpu", json_object_new_uint64(c->cpu));
	add(o, "durationNSec",
	    is_measured(c) ? json_object_new_uint64(c->gap ? c->covered : took) : NULL);
	if (c->gap) {
		add(o, "gap", json_object_new_string(name_of(q, c)));
		add(o, "gaps", json_object_new_uint64(c->gaps));
		add(o, "withinNSec", json_object_new_uint64(took));
	} else {
		add(o, "uncertainNSec", is_measured(c) ? json_object_new_uint64(uncertain) : NULL);
		add(o, "offCpuNSec",
		    c->running || !is_measured(c) ? NULL : json_object_new_uint64(c->off));
		add(o, "depth", json_object_new_uint64(c->depth));
		add(o, "function", c->function ? json_object_new_string(name_of(q, c)) : NULL);
		add(o, "image", image && *image ? json_object_new_string(image) : NULL);
		add(o, "begin", json_object_new_string(callstream_begin_name(c->how)));
		add(o, "end",
		    json_object_new_string(c->running ? "running" : callstream_end_name(c->ended)));
		add(o, "selfInstructions",
		    c->running || !is_measured(c) ? NULL : json_object_new_uint64(c->insns));
	}
	if (q->settings->json == JSON_PRETTY)
		fputs(q->n == 0 ? "[\n" : ",\n", stdout);
	json_print(q->settings, o);
	json_object_put(o);
}

/* Whether a line has the thread's name. */
static bool is_wide(const struct request *q)
{
	return !q->terminal || q->style.columns >= WIDE;
}

static size_t took_width(const struct request *q)
{
	return is_wide(q) ? 21 : 18;
}

static size_t on_cpu_width(const struct request *q)
{
	return is_wide(q) ? 10 : 8;
}

/* TEXT at the right of WIDTH columns, and a blank. Returns the columns. */
static size_t put_right(const char *text, size_t width)
{
	size_t columns = text_columns(text, strlen(text));

	printf("%*s%s ", (int)(width - MIN_OF(columns, width)), "", text);
	return MAX_OF(columns, width) + 1;
}

/* How long it took, with what is uncertain if that is more than a tenth. Returns the columns. */
static size_t print_duration(const struct request *q, const struct order_call *c)
{
	uint64_t uncertain, took = order_duration(c, &uncertain);
	struct figure on_cpu = {.text = ""};
	char text[80] = "-";
	size_t n;

	if (is_measured(c)) {
		n = (size_t)snprintf(text, sizeof(text), "%s%s", c->running ? ">" : "",
				     figure_nsec(c->gap ? c->covered : took).text);
		if (uncertain > took / 10 && uncertain > 0)
			snprintf(text + n, sizeof(text) - n, " %s%s",
				 q->style.utf8 ? "\u00b1" : "+-", figure_nsec(uncertain).text);
		if (c->off > 0)
			on_cpu = figure_nsec(took - MIN_OF(took, c->off));
	}
	n = put_right(text, took_width(q));
	n += put_right(on_cpu.text, on_cpu_width(q));
	putchar(' ');
	return n + 1;
}

/* Returns the columns. */
static size_t print_thread(const struct request *q, const struct order_call *c)
{
	const struct order_thread *t = order_thread(&q->order, c->thread);
	const char *name = c->thread != 0 && *t->name ? t->name : "-";
	size_t used = 0;

	if (is_wide(q)) {
		used = text_puts(stdout, name, 16);
		printf("%*s", (int)(17 - used), "");
		used = 17;
	}
	return used + (size_t)(c->thread == 0 ? printf("%-7s ", "-") : printf("%-7u ", t->tid));
}

/* The text behind the name. */
static void put_remarks(FILE *out, const struct order_call *c)
{
	if (c->gap && c->thread == 0)
		fprintf(out, " (CPU %u)", c->cpu);
	if (c->gap && c->gaps > 1)
		fprintf(out, ", %ju times within %s", (uintmax_t)c->gaps,
			figure_nsec(c->end - c->begin).text);
	if (!c->gap && (c->how == CALLSTREAM_SIGNAL || c->how == CALLSTREAM_FOUND ||
			(c->function && is_measured(c) && c->how != CALLSTREAM_CALL &&
			 c->how != CALLSTREAM_JUMP)))
		fprintf(out, " <%s>", callstream_begin_name(c->how));
	if (!c->gap && !c->running && c->ended != CALLSTREAM_RETURN && c->ended != CALLSTREAM_LEFT)
		fprintf(out, " [%s]", callstream_end_name(c->ended));
}

/* The name, indented, and remarks; on a terminal in the columns behind USED. Whoever is too far in
 * is indented no more, and remarks that have no room are cut. */
static void print_name(const struct request *q, const struct order_call *c, size_t used)
{
	const size_t all = q->style.columns > used ? q->style.columns - used : 0;
	const size_t most = all > LEAST_NAME ? all - LEAST_NAME : 0;
	const char *mark = c->gap ? "# gap " : "";
	size_t indent = 2 * MIN_OF(c->depth, MAX_INDENT), room, size = 0;
	CLEANUP_FREE char *remarks = NULL;
	FILE *out = open_memstream(&remarks, &size);

	if (out)
		put_remarks(out, c);
	if (!out || fclose(out) == EOF)
		return;
	indent = q->terminal ? MIN_OF(indent, most) : indent;
	printf("%*s%s", (int)indent, "", mark);
	if (!q->terminal) {
		text_puts(stdout, name_of(q, c), 0);
		puts(remarks);
		return;
	}
	room = all > indent + strlen(mark) ? all - indent - strlen(mark) : LEAST_NAME;
	used = name_puts(stdout, name_of(q, c),
			 room > size + LEAST_NAME ? room - size : MIN_OF(room, LEAST_NAME));
	if (used < room)
		text_puts(stdout, remarks, room - used);
	putchar('\n');
}

static void print_head(const struct request *q)
{
	printf("%13s ", q->order.trigger ? "TRIGGER +ms" : "BEGIN +ms");
	if (is_wide(q))
		printf("%-16s ", "COMM");
	printf("%-7s %*s %*s  CALL\n", "TID", (int)took_width(q), "TOOK", (int)on_cpu_width(q),
	       "ON CPU");
}

static void print_text(struct request *q, const struct order_call *c)
{
	size_t used = 14;

	if (q->n == 0)
		print_head(q);
	printf("%13.6f ", (double)time_of(q, c) / 1e6);
	used += print_thread(q, c);
	used += print_duration(q, c);
	print_name(q, c, used);
}

/* The pager begins with the first line: until then, Ctrl-C is ours, and the progress is shown. */
static void begin_lines(struct request *q)
{
	if (!q->terminal)
		return;
	progress_end();
	if (!q->no_pager && !json_wanted(q->settings))
		pager_begin(&q->pager);
}

static int print_call(struct request *q, const struct order_call *c)
{
	if (q->n == 0)
		begin_lines(q);
	if (json_wanted(q->settings))
		print_json(q, c);
	else
		print_text(q, c);
	q->n++;
	q->n_calls += !c->gap;
	if (ferror(stdout))
		return DONE;
	return q->limit > 0 && q->n == q->limit ? DONE : 0;
}

static int on_call(void *userdata, const struct order_call *c)
{
	struct request *q = userdata;

	return gaps_take(&q->gaps, c);
}

static int on_line(void *userdata, const struct order_call *c)
{
	struct request *q = userdata;

	if (q->last == 0)
		return print_call(q, c);
	q->newest[q->n_newest++ % q->last] = *c;
	return 0;
}

/* --- All --- */

static int print_newest(struct request *q)
{
	uint64_t first = q->n_newest > q->last ? q->n_newest - q->last : 0;
	int r = 0;

	for (uint64_t i = first; i < q->n_newest && r == 0; i++)
		r = print_call(q, &q->newest[i % q->last]);
	return r;
}

/* With --limit, nobody has seen the gaps behind the last line. */
static void remark_gaps(const struct request *q)
{
	const char *where = q->limit > 0 && q->n == q->limit ? " up to the last line" : "";

	if (q->gaps.left_out > 0)
		say("%s%s, %ju of which touch none of these calls and are not shown",
		    figure_things(q->gaps.n, "gap").text, where, (uintmax_t)q->gaps.left_out);
	else
		say("%s%s", figure_things(q->gaps.n, "gap").text, where);
}

static void remark(const struct request *q)
{
	if (q->settings->quiet)
		return;
	if (q->n_calls == 0)
		say("no calls; without --function, --longer-than and other selections there may be "
		    "some");
	if (q->gaps.n > 0)
		remark_gaps(q);
	if (q->order.running > 0)
		say("> stands before the time of %s that had not ended when %u later calls had "
		    "begun: the time so far",
		    figure_things(q->order.running, "call").text, ORDER_MAX);
	if (q->order.cut > 0)
		say("%s left out, too deep within others",
		    figure_things(q->order.cut, "call").text);
	if (q->order.nameless > 0)
		say("%ju names of functions and threads are shown as " ORDER_NAMELESS
		    ", because the names take too much memory",
		    (uintmax_t)q->order.nameless);
	if (q->order.threads_left_out > 0)
		say("%ju threads beyond %u were left out", (uintmax_t)q->order.threads_left_out,
		    ORDER_MAX_THREADS);
}

/* Whoever selects calls wants to know what is missing in them, and not elsewhere. */
static void choose_gaps(struct request *q)
{
	const struct slice *s = &q->slice;

	q->gaps.choose_of_threads = s->function || s->image || q->order.longer_than > 0;
	q->gaps.choose_of_cpus = q->gaps.choose_of_threads || s->has_pid || s->has_tid || s->comm;
}

/* Says why reading ended with R, not 0. Returns an exit code. */
static int say_failure(const struct request *q, int r)
{
	if (r == -EINVAL)
		return say_error(EXIT_CODE_USAGE, "%s: nothing lies between --from and --to",
				 q->source.operand);
	if (r == -ENOMEM)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	/* An exit code was said where it was found. */
	return r > 0 ? r : say_error(EXIT_CODE_FAILURE, "%s: %s", q->source.operand, strerror(-r));
}

static int read_calls(struct request *q)
{
	CLEANUP(slicer_freep) struct slicer *slicer = NULL;
	int r;

	if (slicer_new(&q->slice, order_take, &q->order, &slicer) < 0)
		return -ENOMEM;
	q->source.span = slice_decode_until(&q->slice);
	r = calls_read(&q->source, slicer_take, slicer);
	if (r == 0)
		r = gaps_finish(&q->gaps);
	if (r == 0 && q->last > 0)
		r = print_newest(q);
	return r;
}

static int run(struct request *q)
{
	int r;

	if (q->last > 0 && !(q->newest = calloc(q->last, sizeof(*q->newest))))
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	q->style = show_style_of_stdout();
	q->terminal = isatty(STDOUT_FILENO);
	choose_gaps(q);
	r = read_calls(q);
	if ((r == 0 || r == DONE) && q->settings->json == JSON_PRETTY)
		puts(q->n > 0 ? "]" : "[]");
	pager_end(&q->pager);
	if (r != 0 && r != DONE)
		return say_failure(q, r);
	remark(q);
	return 0;
}

int cmd_calls(struct settings *s, int argc, char **argv)
{
	struct request q = {.settings = s};
	int r;

	order_init(&q.order);
	q.order.fn = on_call;
	q.order.userdata = &q;
	q.gaps.fn = on_line;
	q.gaps.userdata = &q;
	r = parse(&q, argc, argv);
	if (r == 0 && !s->help && !s->version)
		r = run(&q);
	free(q.newest);
	gaps_done(&q.gaps);
	order_done(&q.order);
	return r;
}
