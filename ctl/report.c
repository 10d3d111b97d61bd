/*
 * Opens the report that an operand names: a stored one, a saved one, or one that is decoded for the
 * purpose.
 *
 * The report that the recorder stores is short. Who shows a list of it in full decodes the stored
 * bundle again where the stored report has no room for that list.
 */
#include "ctl/verb.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/report.h"

#include "ctl/base/field.h"
#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/client/client.h"
#include "ctl/decode/decode_option.h"
#include "ctl/decode/decode_run.h"
#include "ctl/show/show.h"

/* The recorder may have to make the report first (io.ptsnap.recorder(7), REPORTS FOR ONE USER). */
#define REMAKE_TIMEOUT_USEC 600000000ull

#define MAX_SAVED (256ull << 20) /* bytes of a saved report */

/* Whether FD is a report: its first byte that is not white space begins a JSON object, which
 * neither a bundle nor a perf.data begins with. */
static bool is_report(int fd)
{
	char head[64];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	for (ssize_t i = 0; i < n; i++)
		if (!strchr(" \t\r\n", head[i]))
			return head[i] == '{';
	return false;
}

struct show_select select_of(const struct slice *s)
{
	return (struct show_select){
		.has_cpu = s->has_cpu,
		.has_pid = s->has_pid,
		.has_tid = s->has_tid,
		.cpu = s->cpu,
		.pid = s->pid,
		.tid = s->tid,
		.comm = s->comm,
		.function = s->function,
		.image = s->image,
	};
}

/* Whether O has something that only a report has. */
static bool looks_like_report(struct json_object *o)
{
	static const char *const keys[] = {"schemaVersion", "skim",    "coverage",
					   "functions",	    "threads", "turns"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (field_get(o, keys[i]))
			return true;
	return false;
}

/* Says what is wrong with the file PATH, open as FD, that looks like a report. 0, or an exit code.
 */
static int check_saved(int fd, const char *path)
{
	static const char version[] = REPORT_SCHEMA_VERSION;
	struct json_object *report = NULL;
	CLEANUP_FREE char *text = NULL, *own = NULL;
	size_t size = 0;
	int r = file_read_whole(fd, MAX_SAVED, &text, &size);

	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %s", path, strerror(-r));
	text[size] = '\0';
	report = json_tokener_parse(text);
	if (!report)
		r = say_error(EXIT_CODE_FAILURE, "%s: not valid JSON, or cut off", path);
	else if (field_text(report, "schemaVersion"))
		own = strdup(field_text(report, "schemaVersion"));
	else if (!looks_like_report(report))
		r = say_error(EXIT_CODE_FAILURE, "%s: JSON, but no report of ptsnap", path);
	if (own && strncmp(own, version, strcspn(version, ".") + 1) != 0)
		r = say_error(EXIT_CODE_FAILURE,
			      "%s: the report has version %.12s of the schema, and this program "
			      "reads version %s; decode the snapshot again, from its bundle",
			      path, own, version);
	json_object_put(report);
	return r;
}

/* Decodes the bundle or perf.data of W, or the stored snapshot ID if that is not NULL, as
 * `ptsnapctl decode' without options. */
static int decode_report(struct settings *s, const struct report_wanted *w, const char *id,
			 int *ret_fd)
{
	CLEANUP(decode_request_done) struct decode_request q;
	CLEANUP_CLOSE int fd = -EBADF, report_fd = -EBADF;
	char *argv[] = {(char *)"decode", (char *)"--", (char *)(id ? id : w->operand), NULL};
	int r;

	decode_request_init(&q, s);
	optind = 0;
	r = decode_request_parse(&q, 3, argv);
	q.options.report_limit = w->lists ? REPORT_LIST_LIMIT : REPORT_DECODE_LIMIT;
	q.options.slice = w->slice;
	if (r == 0)
		r = decode_open(&q, &fd);
	if (r != 0)
		return r;
	if (memfd_new("ptsnap-report", 0, &report_fd) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a memory file: %m");
	r = decode_run_worker(&q, fd, report_fd, -1);
	if (r == 0)
		*ret_fd = take_fd(&report_fd);
	return r;
}

/* Whether a part of the snapshot is wanted, and not all of it. */
static bool is_part(const struct decode_slice *slice)
{
	return slice->from || slice->to || decode_slice_selects(slice);
}

static bool is_file(const char *operand)
{
	/* An operand with a slash, or that exists as a file, is a file; any other is an ID. */
	return strchr(operand, '/') || access(operand, F_OK) == 0;
}

static int open_file(struct settings *s, const struct report_wanted *w, int *ret_fd)
{
	CLEANUP_CLOSE int fd = open(w->operand, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	int r;

	if (fd < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %m", w->operand);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !is_report(fd))
		return decode_report(s, w, NULL, ret_fd);
	if (is_part(&w->slice))
		return say_error(EXIT_CODE_USAGE,
				 "%s: a saved report has no trace to decode a part of; give the "
				 "ID of the snapshot, or its bundle (`ptsnapctl fetch "
				 "--format=bundle')",
				 w->operand);
	r = check_saved(fd, w->operand);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}

static int open_stored(struct settings *s, const char *id, int *ret_fd)
{
	CLEANUP(client_freep) struct client *c = NULL;
	int r = client_open(s, REMAKE_TIMEOUT_USEC, &c);

	return r != 0 ? r : client_get(c, id, "report", ret_fd);
}

/* Whether one of LISTS is cut in REPORT, and REPORT is not for one user, who has no bundle. */
static bool lacks(struct json_object *report, const char *const *lists)
{
	uint64_t uid;

	if (field_u64(report, "onlyUid", &uid))
		return false;
	for (size_t i = 0; i < field_count(report, "cut"); i++) {
		const char *what = field_text(field_at(report, "cut", i), "what");

		for (const char *const *list = lists; what && *list; list++)
			if (strcmp(what, *list) == 0)
				return true;
	}
	return false;
}

/* The report of a stored snapshot, with room for the lists of W. */
static int open_with_lists(struct settings *s, const struct report_wanted *w, int *ret_fd)
{
	CLEANUP_CLOSE int fd = -EBADF;
	struct json_object *report;
	const char *id;
	int whole = -EBADF, r;

	r = open_stored(s, w->operand, &fd);
	if (r != 0)
		return r;
	report = deliver_read(fd);
	if (!report)
		return EXIT_CODE_FAILURE;
	/* Another snapshot may be the latest by now. */
	id = field_text(report, "id");
	/* If that fails, it says why, and what the stored report has is better than nothing. */
	if (lacks(report, w->lists) && id && decode_report(s, w, id, &whole) == 0) {
		close_fd(fd);
		fd = whole;
	}
	json_object_put(report);
	*ret_fd = take_fd(&fd);
	return 0;
}

int report_open(struct settings *s, const struct report_wanted *w, int *ret_fd)
{
	if (is_file(w->operand))
		return open_file(s, w, ret_fd);
	if (is_part(&w->slice))
		return decode_report(s, w, NULL, ret_fd);
	return w->lists ? open_with_lists(s, w, ret_fd) : open_stored(s, w->operand, ret_fd);
}
