/*
 * ptsnapctl list, fetch, pin, unpin, delete: verbs about stored snapshots.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/field.h"
#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/base/size.h"
#include "ctl/client/client.h"
#include "ctl/show/pager.h"
#include "ctl/show/show.h"

static const struct option NO_OPTIONS[] = {{NULL, 0, NULL, 0}};

/* --- list: a line for each stored snapshot, oldest first --- */

#define WIDE	     125u /* columns of a terminal that has room for all */
#define MAX_ID	     48u
#define DATE_COLUMNS 19u /* 2024-05-17 12:34:56 */

struct listing {
	struct settings *settings;
	uint64_t limit;	    /* 0: all */
	const char *before; /* an ID; NULL: all */
	bool no_pager;
	size_t columns; /* of the terminal; 0: stdout is none, and nothing is cut */
	struct pager pager;
	size_t n;
};

enum { OPTION_LIMIT = OPTION_OWN, OPTION_BEFORE, OPTION_NO_PAGER };

static int take_list(struct listing *l, int option)
{
	switch (option) {
	case OPTION_BEFORE: l->before = optarg; return 0;
	case OPTION_NO_PAGER: l->no_pager = true; return 0;
	case OPTION_LIMIT: break;
	default: return EXIT_CODE_USAGE;
	}
	if (size_parse_number(optarg, &l->limit) == 0 && l->limit > 0 && l->limit <= INT64_MAX)
		return 0;
	return say_error(EXIT_CODE_USAGE, "--limit=%s is not valid; valid: a number from 1 on",
			 optarg);
}

static int parse_list(struct listing *l, int argc, char **argv)
{
	static const struct option own[] = {
		{"limit", required_argument, NULL, OPTION_LIMIT},
		{"before", required_argument, NULL, OPTION_BEFORE},
		{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
		{NULL, 0, NULL, 0},
	};
	int option, r;

	while ((option = option_next(l->settings, argc, argv, own, "", true)) != OPTION_END) {
		r = take_list(l, option);
		if (r != 0)
			return r;
	}
	if (optind < argc)
		return say_error(EXIT_CODE_USAGE, "list takes no operand: %s", argv[optind]);
	return 0;
}

/* The parameters of the call; NULL: none. */
static struct json_object *list_parameters(const struct listing *l)
{
	struct json_object *o = json_object_new_object();

	if (o && l->limit > 0)
		json_object_object_add(o, "limit", json_object_new_uint64(l->limit));
	if (o && l->before)
		json_object_object_add(o, "before", json_object_new_string(l->before));
	return o;
}

/* Prints TEXT in WIDTH columns and a blank; returns the columns. A text of MOST columns at most is
 * not cut. */
static size_t cell(const char *text, size_t width, size_t most)
{
	size_t used = text_puts(stdout, text, most);

	return used + (size_t)printf("%*s", used < width ? (int)(width + 1 - used) : 1, "");
}

static size_t number(struct figure f, int width)
{
	return (size_t)printf("%*s ", width, f.text);
}

static void put_labels(FILE *out, struct json_object *labels)
{
	if (!json_object_is_type(labels, json_type_object))
		return;
	json_object_object_foreach(labels, key, value)
	{
		text_puts(out, key, 32);
		fputc('=', out);
		text_puts(out, json_object_get_string(value), 40);
		fputc(' ', out);
	}
}

/* Whether KIND is that of a condition: such a trigger has a name that an administrator gave. */
static bool is_condition(const char *kind)
{
	static const char *const others[] = {"control", "signal", "unit", "exit"};

	for (size_t i = 0; kind && i < ARRAY_SIZE(others); i++)
		if (strcmp(kind, others[i]) == 0)
			return false;
	return kind != NULL;
}

/* The last column: trigger of a condition, unit, labels, and the reason of the snapshot or of its
 * failure. */
static void put_words(FILE *out, struct json_object *report)
{
	const char *unit = field_text(report, "unit"), *error = field_text(report, "error");

	if (field_true(report, "pinned"))
		fputs("[pinned] ", out);
	if (is_condition(field_text(report, "trigger"))) {
		text_puts(out, field_text(report, "name"), 20);
		fputs(": ", out);
	}
	if (unit) {
		text_puts(out, unit, 40);
		fputc(' ', out);
	}
	put_labels(out, field_get(report, "labels"));
	text_puts(out, error ? error : field_text(report, "reason"), 60);
}

/* The same, in ROOM columns. */
static void print_words(struct json_object *report, size_t room)
{
	CLEANUP_FREE char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out)
		put_words(out, report);
	if (out && fclose(out) == 0)
		text_puts(stdout, text, room);
}

static bool is_wide(const struct listing *l)
{
	return l->columns == 0 || l->columns >= WIDE;
}

static void print_head(const struct listing *l)
{
	if (is_wide(l))
		puts("ID                        STATE      DATE                      TRIGGER     "
		     "      RAW     REPORT   GAPS REASON");
	else
		puts("ID                 STATE     DATE                TRIGGER    REASON");
}

static void print_row(const struct listing *l, struct json_object *report)
{
	const bool wide = is_wide(l);
	struct figure date = figure_field_date(report, "realtimeUSec");
	size_t used;

	/* Without the zone. */
	if (!wide)
		date.text[MIN_OF(strlen(date.text), DATE_COLUMNS)] = '\0';
	used = cell(field_text(report, "id"), wide ? 25 : 18, MAX_ID);
	used += cell(field_text(report, "state"), wide ? 10 : 9, wide ? 10 : 9);
	used += cell(date.text, wide ? 25 : DATE_COLUMNS, 25);
	used += cell(field_text(report, "trigger"), 10, 10);
	if (wide) {
		used += number(figure_field_bytes(report, "rawBytes"), 10);
		used += number(figure_field_bytes(report, "reportBytes"), 10);
		used += number(figure_field_count(report, "gaps"), 6);
	}
	print_words(report, l->columns > used ? l->columns - used : l->columns > 0);
	putchar('\n');
}

/* The pager begins with the first line: until then, Ctrl-C is ours. */
static void print_line(struct listing *l, struct json_object *report)
{
	if (l->n == 0 && l->columns > 0 && !l->no_pager)
		pager_begin(&l->pager);
	if (l->n == 0)
		print_head(l);
	print_row(l, report);
}

/* --json=short prints one object a line, --json=pretty one array. */
static int on_report(void *userdata, struct json_object *parameters)
{
	struct listing *l = userdata;
	struct json_object *report = field_get(parameters, "report");

	if (!json_object_is_type(report, json_type_object))
		return 0;
	if (l->settings->json == JSON_PRETTY)
		fputs(l->n == 0 ? "[\n" : ",\n", stdout);
	if (json_wanted(l->settings))
		json_print(l->settings, report);
	else
		print_line(l, report);
	l->n++;
	return 0;
}

int cmd_list(struct settings *s, int argc, char **argv)
{
	CLEANUP(client_freep) struct client *c = NULL;
	struct listing l = {.settings = s};
	struct json_object *last = NULL;
	int r;

	r = parse_list(&l, argc, argv);
	if (r != 0 || s->help || s->version)
		return r;
	if (isatty(STDOUT_FILENO))
		l.columns = show_style_of_stdout().columns;
	r = client_open(s, CLIENT_TIMEOUT_USEC, &c);
	if (r == 0)
		r = client_call(c, "List", list_parameters(&l), on_report, &l, &last);
	if (r == 0)
		on_report(&l, last);
	json_object_put(last);
	pager_end(&l.pager);
	if (r != 0)
		return r;
	if (s->json == JSON_PRETTY)
		puts(l.n > 0 ? "]" : "[]");
	else if (l.n == 0 && !s->quiet && !l.before)
		say("no snapshots yet; `ptsnapctl snapshot' takes one");
	return 0;
}

/* --- fetch: a stored report, or a stored bundle together with its images --- */

static const char *const FORMATS[] = {"report", "bundle", NULL};
enum { FORMAT_REPORT, FORMAT_BUNDLE };
/* The recorder may have to make the report first (io.ptsnap.recorder(7), REPORTS FOR ONE USER), and
 * the reports of other callers before that. */
#define REMAKE_TIMEOUT_USEC 600000000ull

struct fetch_request {
	struct settings *settings;
	const char *id, *output;
	int format;
	bool no_pager;
};

static int parse_fetch(struct fetch_request *q, int argc, char **argv)
{
	static const struct option own[] = {
		{"format", required_argument, NULL, OPTION_OWN},
		{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
		{"output", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = option_next(q->settings, argc, argv, own, "o:", true)) != OPTION_END) {
		if (option == OPTION_USAGE)
			return EXIT_CODE_USAGE;
		if (option == 'o')
			q->output = optarg;
		else if (option == OPTION_NO_PAGER)
			q->no_pager = true;
		else
			q->format = option_choice("--format", optarg, FORMATS);
		if (q->format < 0)
			return EXIT_CODE_USAGE;
	}
	if (q->settings->help || q->settings->version)
		return 0;
	if (argc - optind != 1)
		return say_error(EXIT_CODE_USAGE, "fetch takes one operand: an ID of `ptsnapctl "
						  "list', or latest");
	q->id = argv[optind];
	return 0;
}

/* A name with a slash is a file in a state directory; no recorder has to run for it. */
static int open_stored(const struct fetch_request *q, struct stored **ret)
{
	int fd, r;

	if (!strchr(q->id, '/'))
		return stored_from_recorder(q->settings, q->id, ret);
	if (output_replaces(q->output, q->id))
		return say_error(EXIT_CODE_USAGE,
				 "-o %s: this is the bundle to fetch; give another name",
				 q->output);
	fd = open(q->id, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %m", q->id);
	r = stored_from_file(q->id, fd, ret);
	return r != 0 ? r : stored_check(*ret);
}

int cmd_fetch(struct settings *s, int argc, char **argv)
{
	struct fetch_request q = {.settings = s, .format = FORMAT_REPORT};
	CLEANUP(stored_freep) struct stored *stored = NULL;
	CLEANUP(client_freep) struct client *c = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	int r = parse_fetch(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	if (q.format == FORMAT_BUNDLE && !q.output && isatty(STDOUT_FILENO))
		return say_error(EXIT_CODE_USAGE, "a bundle is binary and not written to a "
						  "terminal; use -o FILE");
	if (q.format == FORMAT_BUNDLE) {
		r = open_stored(&q, &stored);
		return r != 0 ? r : deliver_bundle(s, stored, q.output);
	}
	r = client_open(s, REMAKE_TIMEOUT_USEC, &c);
	if (r == 0)
		r = client_get(c, q.id, FORMATS[q.format], &fd);
	return r != 0 ? r
		      : deliver_report(s, fd, &(struct show_delivery){q.output, false, q.no_pager});
}

/* --- pin, unpin, delete: one call to the recorder for each stored snapshot that is named --- */

/* The call Delete, or Pin with PINNED. */
struct stored_call {
	const char *method;
	bool has_pinned, pinned;
};

static int call_one(struct client *c, const struct stored_call *call, const char *id)
{
	struct json_object *parameters = json_object_new_object(), *answer = NULL;
	int r;

	if (!parameters ||
	    json_object_object_add(parameters, "id", json_object_new_string(id)) < 0 ||
	    (call->has_pinned &&
	     json_object_object_add(parameters, "pinned", json_object_new_boolean(call->pinned)) <
		     0)) {
		json_object_put(parameters);
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	}
	r = client_call(c, call->method, parameters, NULL, NULL, &answer);
	json_object_put(answer);
	return r;
}

/* Tries every ID. The exit code is that of the first failure. */
static int call_each(struct settings *s, int argc, char **argv, const struct stored_call *call)
{
	CLEANUP(client_freep) struct client *c = NULL;
	int r, failed = 0;

	if (option_next(s, argc, argv, NO_OPTIONS, "", true) != OPTION_END)
		return EXIT_CODE_USAGE;
	if (s->help || s->version)
		return 0;
	if (optind == argc)
		return say_error(EXIT_CODE_USAGE,
				 "%s takes at least one ID, as `ptsnapctl list' prints them",
				 argv[0]);
	r = client_open(s, CLIENT_TIMEOUT_USEC, &c);
	if (r != 0)
		return r;
	for (int i = optind; i < argc; i++) {
		/* The recorder does not choose which snapshot is lost. */
		r = !call->pinned && strcmp(argv[i], "latest") == 0
			    ? say_error(EXIT_CODE_USAGE,
					"%s latest: give an ID, as `ptsnapctl list' prints them; "
					"another snapshot may be the latest by now",
					argv[0])
			    : call_one(c, call, argv[i]);
		failed = failed ? failed : r;
	}
	return failed;
}

int cmd_pin(struct settings *s, int argc, char **argv)
{
	return call_each(s, argc, argv, &(struct stored_call){"Pin", true, true});
}

int cmd_unpin(struct settings *s, int argc, char **argv)
{
	return call_each(s, argc, argv, &(struct stored_call){"Pin", true, false});
}

int cmd_delete(struct settings *s, int argc, char **argv)
{
	return call_each(s, argc, argv, &(struct stored_call){"Delete", false, false});
}
