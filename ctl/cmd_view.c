/*
 * ptsnapctl view: writes the calls of a snapshot, or of a saved call stream, as a page to look at.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/calls/calls.h"
#include "ctl/calls/slice.h"
#include "ctl/page/page.h"
#include "ctl/show/show.h"

struct view_request {
	struct calls_source source;
	const char *output; /* as it was given */
	char *name;	    /* owned: the output, if none was given */
	uint64_t limit;	    /* of calls */
	bool no_suspects;
	struct slice slice;
};

enum {
	OPTION_LIMIT = OPTION_OWN,
	OPTION_NO_SUSPECTS,
	OPTION_SOURCE,				       /* the first of SOURCE_OPTIONS */
	OPTION_SLICE = OPTION_SOURCE + SOURCE_OPTIONS, /* the first of SLICE_OPTIONS */
};

static const struct option OPTIONS[] = {
	{"output", required_argument, NULL, 'o'},
	{"limit", required_argument, NULL, OPTION_LIMIT},
	{"no-suspects", no_argument, NULL, OPTION_NO_SUSPECTS},
};

static int take_option(struct view_request *q, int option)
{
	switch (option) {
	case 'o': q->output = optarg; return 0;
	case OPTION_LIMIT: return option_count("--limit", optarg, UINT64_MAX, &q->limit);
	case OPTION_NO_SUSPECTS: q->no_suspects = true; return 0;
	}
	if (option < OPTION_SLICE)
		return source_option_take(&q->source, (size_t)(option - OPTION_SOURCE), optarg);
	return slice_option_take(&q->slice, (size_t)(option - OPTION_SLICE), optarg);
}

static int parse(struct view_request *q, int argc, char **argv)
{
	struct option own[ARRAY_SIZE(OPTIONS) + SOURCE_OPTIONS + SLICE_OPTIONS + 1] = {{0}};
	struct settings *s = q->source.settings;
	int option, r;

	memcpy(own, OPTIONS, sizeof(OPTIONS));
	source_option_table(own + ARRAY_SIZE(OPTIONS), OPTION_SOURCE);
	slice_option_table(own + ARRAY_SIZE(OPTIONS) + SOURCE_OPTIONS, OPTION_SLICE);
	while ((option = option_next(s, argc, argv, own, "o:", true)) != OPTION_END) {
		r = option == OPTION_USAGE ? EXIT_CODE_USAGE : take_option(q, option);
		if (r != 0)
			return r;
	}
	if (s->help || s->version)
		return 0;
	q->source.operand = option_operand(argc, argv,
					   "an ID of `ptsnapctl list', latest, a bundle, a "
					   "perf.data, or a saved call stream");
	if (!q->source.operand)
		return EXIT_CODE_USAGE;
	if (output_replaces(q->output, q->source.operand))
		return say_error(EXIT_CODE_USAGE,
				 "-o %s: this is the input to show; give another name", q->output);
	return 0;
}

/* The operand without its directories. */
static const char *base_name(const char *operand)
{
	const char *slash = strrchr(operand, '/');

	return slash ? slash + 1 : operand;
}

/* Without -o, the page goes to ptsnap-NAME.html in the working directory, or to a pipe. */
static int choose_output(struct view_request *q)
{
	if (q->output || !isatty(STDOUT_FILENO))
		return 0;
	if (asprintf(&q->name, "ptsnap-%s.html", base_name(q->source.operand)) < 0) {
		q->name = NULL;
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	}
	q->output = q->name;
	return 0;
}

/* Opens the operand if it is a saved call stream, which its first bytes say. *ret_fd stays negative
 * if not. */
static void open_stream(const char *operand, int *ret_fd)
{
	static const char head[] = "H\t";
	CLEANUP_CLOSE int fd = open(operand, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char begin[sizeof(head) - 1];
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    pread(fd, begin, sizeof(begin), 0) == sizeof(begin) &&
	    memcmp(begin, head, sizeof(begin)) == 0)
		*ret_fd = take_fd(&fd);
}

/* The page and what is read for it. A reader of calls gets an exit code; the page's errors are put
 * into words later. */
struct taking {
	const struct view_request *request;
	int page_fd;
	struct page *page; /* owned; NULL until there is something to show */
	struct slicer *slicer;
	struct json_object *report; /* owned; NULL: none */
	uint64_t trigger;	    /* ns, as in the stream; 0: unknown */
	int error;		    /* of the page */
};

static void taking_done(struct taking *t)
{
	slicer_freep(&t->slicer);
	page_freep(&t->page);
	json_object_put(t->report);
}

static int take_slice(void *userdata, const struct callstream_item *item)
{
	struct taking *t = userdata;

	if (item->kind == CALLSTREAM_HEAD)
		t->trigger = item->value;
	t->error = page_take(t->page, item);
	return t->error < 0 ? EXIT_CODE_FAILURE : 0;
}

/* An exit code. */
static int begin_page(struct taking *t)
{
	const struct view_request *q = t->request;

	if (!t->page)
		t->error = page_new(t->page_fd, base_name(q->source.operand), q->limit, &t->page);
	return t->error < 0 ? EXIT_CODE_FAILURE : 0;
}

/* The page begins with the first item: an input that cannot be read leaves no half of a page. */
static int take(void *userdata, const struct callstream_item *item)
{
	struct taking *t = userdata;
	int r = begin_page(t);

	return r != 0 ? r : slicer_take(t->slicer, item);
}

/* --- What stands out: the report of the same bundle says it --- */

static int read_report(void *userdata, int bundle_fd)
{
	struct taking *t = userdata;
	CLEANUP_CLOSE int fd = -EBADF;
	int r = calls_report(&t->request->source, bundle_fd, &fd);

	if (r != 0)
		return r;
	t->report = deliver_read(fd);
	return t->report ? 0 : EXIT_CODE_FAILURE;
}

/* The time that is NS behind the trigger. */
static bool time_at(const struct taking *t, int64_t ns, uint64_t *ret)
{
	return t->trigger > 0 && !__builtin_add_overflow(t->trigger, ns, ret);
}

static int take_suspect(void *userdata, const struct show_suspect *s)
{
	struct taking *t = userdata;
	struct page_suspect suspect = {.kind = s->kind,
				       .text = s->text,
				       .function = s->function,
				       .tid = s->tid,
				       .cpu = s->cpu,
				       .has_tid = s->tid != SHOW_NONE,
				       .has_cpu = s->cpu != SHOW_NONE};

	suspect.has_time = s->has_time && time_at(t, s->since_ns, &suspect.from) &&
			   time_at(t, s->until_ns, &suspect.to);
	t->error = page_add_suspect(t->page, &suspect);
	return t->error < 0 ? EXIT_CODE_FAILURE : 0;
}

/* An exit code. */
static int add_occasion(struct taking *t)
{
	CLEANUP_FREE char *text = NULL;

	if (!t->report)
		return 0;
	if (show_occasion(t->report, &text) < 0)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	t->error = page_set_occasion(t->page, text);
	return t->error < 0 ? EXIT_CODE_FAILURE : 0;
}

/* An exit code; 0 also if the report does not say what stands out. */
static int add_suspects(struct taking *t)
{
	int r;

	if (!t->report || !json_object_object_get_ex(t->report, "suspects", NULL))
		return 0;
	t->error = page_looked(t->page);
	if (t->error < 0)
		return EXIT_CODE_FAILURE;
	r = show_each_suspect(t->report, take_suspect, t);
	return r < 0 ? say_error(EXIT_CODE_FAILURE, "out of memory") : r;
}

static int say_stream_error(const char *operand, int error)
{
	switch (-error) {
	case EBADMSG:
		return say_error(EXIT_CODE_FAILURE,
				 "%s: not a call stream of this version, or a damaged one",
				 operand);
	case EINVAL:
		return say_error(EXIT_CODE_USAGE, "%s: nothing lies between --from and --to",
				 operand);
	case ENODATA: return say_error(EXIT_CODE_FAILURE, "%s: the file was cut off", operand);
	default: return say_error(EXIT_CODE_FAILURE, "%s: %s", operand, strerror(-error));
	}
}

static int say_page_error(const struct view_request *q, int error)
{
	if (error == -EPIPE) /* the reader has seen enough */
		return EXIT_CODE_FAILURE;
	if (error == -EBADMSG)
		return say_error(EXIT_CODE_FAILURE, "%s: more threads or functions than a page has",
				 q->source.operand);
	return say_error(EXIT_CODE_FAILURE, "%s: %s", q->output ? q->output : "standard output",
			 strerror(-error));
}

/* Makes a page of the slice and the suspects. Returns an exit code; a message was printed. */
static int read_calls(struct taking *t)
{
	const struct view_request *q = t->request;
	struct calls_source source = q->source;
	CLEANUP_CLOSE int stream_fd = -EBADF;
	int r = slicer_new(&q->slice, take_slice, t, &t->slicer);

	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	source.opened = q->no_suspects ? NULL : read_report;
	source.span = slice_decode_until(&q->slice);
	open_stream(q->source.operand, &stream_fd);
	r = stream_fd >= 0 ? calls_read_fd(stream_fd, take, t) : calls_read(&source, take, t);
	if (r == 0)
		r = begin_page(t);
	if (r == 0)
		r = add_occasion(t);
	if (r == 0)
		r = add_suspects(t);
	if (t->error < 0)
		return say_page_error(q, t->error);
	return r < 0 ? say_stream_error(q->source.operand, r) : r;
}

static void remark(const struct view_request *q, const struct page_told *told)
{
	if (q->source.settings->quiet)
		return;
	if (told->frames == 0)
		say("%s: there are no calls; `ptsnapctl decode' says why", q->source.operand);
	if (told->cut > 0)
		say("the decoder left out %s calls", figure_count(told->cut).text);
	if (told->left_out > 0)
		say("%s calls are not in the page: --limit=%ju, and %u levels of calls",
		    figure_count(told->left_out).text, (uintmax_t)q->limit, PAGE_MAX_DEPTH);
	if (q->name)
		say("%s calls are in %s, for a browser", figure_count(told->frames).text, q->name);
}

static int write_page(const struct view_request *q)
{
	CLEANUP(taking_done) struct taking t = {.request = q};
	CLEANUP(output_done) struct output o;
	struct page_told told;
	int r;

	output_init(&o);
	r = output_open(&o, q->output);
	if (r == 0 && output_is_terminal(&o))
		return say_error(EXIT_CODE_USAGE, "a page is not written to a terminal");
	if (r < 0)
		return say_page_error(q, r);
	t.page_fd = o.fd;
	r = read_calls(&t);
	if (r != 0)
		return r;
	r = page_finish(t.page, &told);
	if (r == 0)
		r = output_commit(&o);
	if (r < 0)
		return say_page_error(q, r);
	remark(q, &told);
	return 0;
}

int cmd_view(struct settings *s, int argc, char **argv)
{
	struct view_request q = {.source = {.settings = s}, .limit = PAGE_MAX_FRAMES};
	int r = parse(&q, argc, argv);

	if (r == 0 && !s->help && !s->version) {
		r = choose_output(&q);
		if (r == 0)
			r = write_page(&q);
	}
	free(q.name);
	return r;
}
