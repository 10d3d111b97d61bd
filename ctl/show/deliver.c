/*
 * Writes a report or a bundle to a terminal, a pipe or a file.
 */
#include "ctl/show/show.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <json-c/json.h>

#include "ctl/base/field.h"
#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/show/page.h"
#include "ctl/show/pager.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/report.h"

/* json-c's tree of a report takes about fifteen times the memory of the text. */
#define MAX_PARSED (256ull << 20)
#define MAX_DEPTH  32

static int write_failed(const char *path, int r)
{
	/* A reader that has closed the pipe (`| head') needs no message. */
	if (r == -EPIPE)
		return EXIT_CODE_FAILURE;
	return say_error(EXIT_CODE_FAILURE, "%s: %s",
			 path && strcmp(path, "-") != 0 ? path : "standard output", strerror(-r));
}

/* Whether REPORT has the version of the schema that this program reads; says so if not. Other
 * output of the decoder, such as the map of a skim, has no version. */
static bool is_known(struct json_object *report)
{
	static const char major[] = REPORT_SCHEMA_VERSION;
	const char *version = field_text(report, "schemaVersion");
	CLEANUP_FREE char *text = NULL;
	size_t size = 0;
	FILE *out;

	if (!version || strncmp(version, major, strcspn(major, ".") + 1) == 0)
		return true;
	out = open_memstream(&text, &size);
	if (out)
		text_puts(out, version, 12);
	if (out && fclose(out) == 0)
		say("the report has version %s of the schema, and this program reads version %s; "
		    "decode the snapshot again: `ptsnapctl fetch --format=bundle ID -o FILE', "
		    "`ptsnapctl decode FILE'",
		    text, major);
	return false;
}

struct json_object *deliver_read(int fd)
{
	CLEANUP_FREE char *text = NULL;
	struct json_tokener *tokener;
	struct json_object *report;
	size_t size = 0;
	int r = file_read_whole(fd, MAX_PARSED, &text, &size);

	if (r < 0) {
		say("cannot read the report: %s; -o FILE writes the report without reading it",
		    strerror(-r));
		return NULL;
	}
	tokener = json_tokener_new_ex(MAX_DEPTH);
	report = tokener ? json_tokener_parse_ex(tokener, text, (int)size) : NULL;
	json_tokener_free(tokener);
	if (json_object_is_type(report, json_type_object) && is_known(report))
		return report;
	if (!json_object_is_type(report, json_type_object))
		say("the report is not valid JSON; -o FILE writes the report without reading it");
	json_object_put(report);
	return NULL;
}

static int print_json(const struct settings *s, struct json_object *report, int fd)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;
	CLEANUP_FREE char *safe = NULL;
	const char *text;
	size_t size;
	int r;

	if (s->json == JSON_PRETTY)
		flags |= JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;
	text = json_object_to_json_string_length(report, flags, &size);
	if (!text || text_json(text, size, &safe, &size) < 0)
		return -ENOMEM;
	r = memfd_write_all(fd, safe, size);
	return r < 0 ? r : memfd_write_all(fd, "\n", 1);
}

/* Writes TEXT to stdout, with a pager if PAGER is true and stdout is a terminal. */
static void put_out(const char *text, size_t size, bool pager)
{
	if (!pager || !isatty(STDOUT_FILENO) || !pager_show(text, size))
		fwrite(text, 1, size, stdout);
}

static void show_summary(FILE *out, struct json_object *report)
{
	if (field_text(report, "skim"))
		show_skim(out, report);
	else
		show_report(out, report);
}

/* On a terminal, the lines fit. 0 or -errno. */
static int print_summary(struct json_object *report, bool pager)
{
	CLEANUP_FREE char *text = NULL, *fitted = NULL;
	size_t size = 0;
	FILE *out;

	if (!isatty(STDOUT_FILENO)) {
		show_summary(stdout, report);
		return 0;
	}
	out = open_memstream(&text, &size);
	if (!out)
		return -ENOMEM;
	show_summary(out, report);
	if (fclose(out) == EOF || !(out = open_memstream(&fitted, &size)))
		return -ENOMEM;
	page_fit(out, text, show_style_of_stdout().columns);
	if (fclose(out) == EOF)
		return -ENOMEM;
	put_out(fitted, size, pager);
	return 0;
}

static int deliver_parsed(const struct settings *s, int fd, struct output *o,
			  const struct show_delivery *d, bool as_json)
{
	struct json_object *report = deliver_read(fd);
	int r;

	if (!report)
		return EXIT_CODE_FAILURE;
	r = as_json ? print_json(s, report, o->fd) : print_summary(report, !d->no_pager);
	json_object_put(report);
	return r < 0 ? write_failed(o->path, r) : 0;
}

int deliver_report(const struct settings *s, int fd, const struct show_delivery *d)
{
	CLEANUP(output_done) struct output o;
	const char *path = d->path;
	bool format = json_wanted(s), text;
	struct stat st;
	int r;

	output_init(&o);
	r = output_open(&o, path);
	if (r < 0)
		return write_failed(path, r);
	text = !format && !path && (d->summary || s->json == JSON_OFF || output_is_terminal(&o));
	if (text || format) {
		r = deliver_parsed(s, fd, &o, d, format);
		if (r != 0)
			return r;
	} else {
		r = fstat(fd, &st) < 0 ? -errno : memfd_copy(fd, 0, (uint64_t)st.st_size, o.fd);
	}
	if (r == 0)
		r = output_commit(&o);
	return r < 0 ? write_failed(path, r) : 0;
}

typedef void (*show_fn)(FILE *out, struct json_object *o, const struct show_style *style);

/* Shows O as a page, with a pager if PAGER is true. 0 or -errno. */
static int show_page(struct json_object *o, show_fn show, bool pager)
{
	const struct show_style style = show_style_of_stdout();
	CLEANUP_FREE char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -errno;
	show(out, o, &style);
	if (fclose(out) == EOF)
		return -ENOMEM;
	put_out(text, size, pager);
	return 0;
}

static void show_any(FILE *out, struct json_object *report, const struct show_style *style)
{
	if (field_text(report, "skim"))
		show_skim(out, report);
	else
		show_info(out, report, style);
}

int deliver_info(const struct settings *s, int fd, const struct show_select *select, bool pager)
{
	struct json_object *report = deliver_read(fd);
	int r = 0;

	if (!report)
		return EXIT_CODE_FAILURE;
	if (select)
		r = show_keep(report, select);
	if (r == 0 && json_wanted(s))
		r = print_json(s, report, STDOUT_FILENO);
	else if (r == 0)
		r = show_page(report, show_any, pager);
	json_object_put(report);
	return r < 0 ? write_failed(NULL, r) : 0;
}

static void show_compared(FILE *out, struct json_object *both, const struct show_style *style)
{
	struct json_object *difference = field_get(both, "difference");

	show_any(out, field_get(both, "report"), style);
	if (difference)
		show_difference(out, difference, style);
}

int deliver_compared(const struct settings *s, struct json_object *both, bool pager)
{
	int r = json_wanted(s) ? print_json(s, both, STDOUT_FILENO)
			       : show_page(both, show_compared, pager);

	return r < 0 ? write_failed(NULL, r) : 0;
}

int deliver_diff(const struct settings *s, struct json_object *diff, bool pager)
{
	int r = json_wanted(s) ? print_json(s, diff, STDOUT_FILENO)
			       : show_page(diff, show_diff, pager);

	return r < 0 ? write_failed(NULL, r) : 0;
}

static int print_list(struct json_object *report, const struct show_list *list,
		      const struct show_select *select, bool pager)
{
	const struct show_style style = show_style_of_stdout();
	CLEANUP_FREE char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r = 0;

	if (!out)
		return -errno;
	if (select->histogram)
		show_histograms(out, report, select, &style);
	else
		r = show_list(out, report, list, select, &style);
	if (fclose(out) == EOF)
		return -ENOMEM;
	if (r == 0)
		put_out(text, size, pager);
	return r;
}

static int print_list_json(const struct settings *s, struct json_object *report,
			   const struct show_list *list, const struct show_select *select)
{
	struct json_object *array;
	int r = show_list_json(report, list, select, s->quiet, &array);

	if (r == 0)
		r = print_json(s, array, STDOUT_FILENO);
	json_object_put(array);
	return r;
}

int deliver_list(const struct settings *s, int fd, const struct show_list *list,
		 const struct show_select *select, bool pager)
{
	struct json_object *report = deliver_read(fd);
	int r;

	if (!report)
		return EXIT_CODE_FAILURE;
	if (json_wanted(s))
		r = print_list_json(s, report, list, select);
	else
		r = print_list(report, list, select, pager);
	json_object_put(report);
	return r < 0 ? write_failed(NULL, r) : 0;
}

static int print_timeline(struct json_object *report, const struct show_select *select,
			  bool picture, bool pager)
{
	struct show_style style = show_style_of_stdout();
	CLEANUP_FREE char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r;

	if (!out)
		return -errno;
	/* Only a terminal needs short lines. */
	if (!picture && !isatty(STDOUT_FILENO))
		style.columns = 0;
	r = show_timeline(out, report, select, &style, picture);
	if (fclose(out) == EOF)
		return -ENOMEM;
	if (r == 0)
		put_out(text, size, pager);
	return r;
}

static int print_timeline_json(const struct settings *s, struct json_object *report,
			       const struct show_select *select)
{
	struct json_object *array = NULL;
	int r = show_timeline_json(report, select, &array);

	if (r == 0)
		r = print_json(s, array, STDOUT_FILENO);
	json_object_put(array);
	return r;
}

int deliver_timeline(const struct settings *s, int fd, const struct show_select *select,
		     bool picture, bool pager)
{
	struct json_object *report = deliver_read(fd);
	int r;

	if (!report)
		return EXIT_CODE_FAILURE;
	if (json_wanted(s))
		r = print_timeline_json(s, report, select);
	else
		r = print_timeline(report, select, picture, pager);
	json_object_put(report);
	if (r == -EINVAL)
		return say_error(EXIT_CODE_USAGE, "nothing lies between --from and --to");
	return r < 0 ? write_failed(NULL, r) : 0;
}

int deliver_bundle(const struct settings *s, struct stored *stored, const char *path)
{
	CLEANUP(output_done) struct output o;
	int r;

	output_init(&o);
	r = output_open(&o, path);
	if (r < 0)
		return write_failed(path, r);
	if (output_is_terminal(&o))
		return say_error(
			EXIT_CODE_USAGE,
			"a bundle is binary data and is not written to a terminal; use -o FILE");
	r = stored_write(stored, s->quiet, o.fd);
	if (r != 0)
		return r;
	r = output_commit(&o);
	return r < 0 ? write_failed(path, r) : 0;
}
