/*
 * A report in about 40 lines for a terminal, all of its tables, and the map of a skim.
 *
 * This room is the last step of `ptsnapctl snapshot', `info', `fetch' and `decode': deliver.c takes
 * a report or a bundle that lies in a file, and writes the file's bytes, formatted JSON, or text to
 * where the user asked for them. The text of `info' and `snapshot' is a page (show_info.c,
 * show_suspects.c, page.c) that says what happened; the text of `fetch' and `decode' is all tables
 * (show_report()); a pager (pager.c) shows the page. `functions', `turns' and so on show one list
 * of the report, all of it or selected rows (list.c, list_columns.c). `timeline' shows the events
 * of all lists in the order of time (timeline.c), or a picture of the CPUs (timeline_picture.c).
 *
 * Decisions that govern the room:
 * - The recorder and the decoder write data (proto/report.h) and never lines for a screen. All text
 *   for people is made here, from the JSON alone.
 * - A report is input: it may come from an older or newer decoder, or from a stranger. A key that
 *   is absent, null or of an unexpected type prints "-" or nothing, and is never an error
 *   (field.h).
 * - All strings go through say.c, which escapes what could drive a terminal. Long names are
 *   shortened by name.c.
 * - The summary is short: each table shows its first few rows and says how many more there are. The
 *   gaps table shows one gap of each kind, so that a thousand gaps of one kind cannot hide the only
 *   gap of another kind.
 * - Nothing here changes a report or keeps any of it: strings are borrowed from the JSON tree.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <json-c/json.h>

#include "ctl/base/option.h"
#include "ctl/client/stored.h"

/* Prints the summary of REPORT, the JSON object that proto/report.h describes. */
void show_report(FILE *out, struct json_object *report);

/*
 * Prints NAME (untrusted text; NULL prints "-") in at most COLUMNS columns, escaped as by
 * text_puts(), and returns the number of columns. A name that is too long loses first the
 * template arguments of C++, then the parameters, then its middle; "..." stands for what is left
 * out.
 */
size_t name_puts(FILE *out, const char *name, size_t columns);

/* How a page may look. */
struct show_style {
	unsigned columns; /* of a line */
	bool color;	  /* escape sequences for colours */
	bool utf8;	  /* characters beyond ASCII */
};

/* The style for stdout: of a terminal as wide as it is, with colours unless $NO_COLOR is set or
 * $TERM is "dumb"; else 80 columns. */
struct show_style show_style_of_stdout(void);
/* Prints one page about REPORT. */
void show_info(FILE *out, struct json_object *report, const struct show_style *style);
/* What stands out, in words, and where it is. Texts are borrowed for a call; FUNCTION, which may be
 * "", has no offset behind it. */
struct show_suspect {
	const char *kind, *text, *function;
	int64_t since_ns, until_ns; /* from the trigger on, with HAS_TIME */
	bool has_time;
	uint32_t tid, cpu; /* SHOW_NONE: no one */
};
#define SHOW_NONE	 UINT32_MAX
#define SHOW_NO_SUSPECTS 1

/* 0; another value ends the list. */
typedef int (*show_suspect_fn)(void *userdata, const struct show_suspect *suspect);
/* Calls FN for each suspect of REPORT. 0; SHOW_NO_SUSPECTS: the report is older, and does not say;
 * the result of FN if that was not 0; -ENOMEM. */
int show_each_suspect(struct json_object *report, show_suspect_fn fn, void *userdata);
/* The host, the time and the trigger of REPORT in one line, escaped; *RET is the caller's. 0 or
 * -ENOMEM. */
int show_occasion(struct json_object *report, char **ret);
/* Prints one page about DIFF, the JSON object that diff_reports() of ctl/diff makes. */
void show_diff(FILE *out, struct json_object *diff, const struct show_style *style);
/* Prints DIFF of a baseline and a report as the end of the page about that report. */
void show_difference(FILE *out, struct json_object *diff, const struct show_style *style);
/* A place in time: ns before the trigger, or from the begin of the trace. */
struct show_time {
	bool given, before_trigger;
	uint64_t ns;
};

/* Which rows of a list or events to show. Zero: all. Texts are borrowed. */
struct show_select {
	bool has_cpu, has_pid, has_tid;
	uint32_t cpu, pid, tid;
	const char *comm, *function, *image; /* patterns of fnmatch(3) */
	uint64_t limit;			     /* of rows; 0: none */
	struct show_time from, to;	     /* events only */
	uint64_t last;			     /* events: only the last ones; 0: all */
	bool histogram;			     /* of functions: how long their calls took */
};

struct show_list;

/* The list of a report with this name ("functions", "turns"); NULL: there is none. */
const struct show_list *show_list_find(const char *name);
/* The names of the selections that make sense for LIST, "pid" for pid; the last one is NULL. */
const char *const *show_list_options(const struct show_list *list);
/* Whether rows of LIST count what threads did, which only the decoder can divide by threads. */
bool show_list_is_counted(const struct show_list *list);
/* Prints the selected rows of LIST of REPORT as a table, and below it what the table does not have.
 * 0 or -ENOMEM. */
int show_list(FILE *out, struct json_object *report, const struct show_list *list,
	      const struct show_select *select, const struct show_style *style);
/* Prints how long the calls of the selected functions of REPORT took, as histograms; of no limit,
 * those of the first few. */
void show_histograms(FILE *out, struct json_object *report, const struct show_select *select,
		     const struct show_style *style);
/* Makes an array of the selected rows, the caller's to put; NULL if the report has no such list.
 * Says what the list of the report does not have, unless QUIET. 0 or -ENOMEM. */
int show_list_json(struct json_object *report, const struct show_list *list,
		   const struct show_select *select, bool quiet, struct json_object **ret);
/* Takes the threads and the suspects that are not selected out of REPORT, and adds "selected": how
 * many there are of how many. 0 or -ENOMEM. */
int show_keep(struct json_object *report, const struct show_select *select);
/* Prints the selected events of REPORT in the order of time, or with PICTURE a picture of its CPUs;
 * and what is not shown. 0; -EINVAL: the selected time is empty; -ENOMEM. */
int show_timeline(FILE *out, struct json_object *report, const struct show_select *select,
		  const struct show_style *style, bool picture);
/* Makes an array of the selected events, the caller's to put. Results as above. */
int show_timeline_json(struct json_object *report, const struct show_select *select,
		       struct json_object **ret);
/* Prints MAP, the JSON object that `ptsnapctl decode --skim' makes. */
void show_skim(FILE *out, struct json_object *map);

struct show_delivery {
	const char *path; /* "-": stdout; NULL: the user gave no path, also stdout */
	bool summary;	  /* text is wanted wherever stdout goes */
	bool no_pager;
};

/*
 * Writes the report in FD (borrowed, a regular file) as D says and returns an exit code:
 * - with --json=short or --json=pretty as JSON in that format;
 * - without a path, when a summary is wanted, stdout is a terminal or --json=off was given, as the
 *   text of show_report() or show_skim(), on a terminal with a pager and in lines that fit;
 * - else the file's bytes as they are.
 */
int deliver_report(const struct settings *s, int fd, const struct show_delivery *d);
/*
 * Writes the report in FD (borrowed, a regular file) to stdout and returns an exit code: as JSON if
 * --json asks for it, else as the page of show_info(), with the pager if PAGER is true and stdout
 * is a terminal. SELECT as of show_keep(); NULL: all.
 */
int deliver_info(const struct settings *s, int fd, const struct show_select *select, bool pager);
/* The same for BOTH (borrowed), an object of "report" and "difference" (null: unknown): the page of
 * the report, and at its end that of show_difference(). */
int deliver_compared(const struct settings *s, struct json_object *both, bool pager);
/* Reads the JSON object in FD (borrowed); the caller's. NULL after a message. */
struct json_object *deliver_read(int fd);
/* The same as deliver_info(), for DIFF (borrowed) and show_diff(). */
int deliver_diff(const struct settings *s, struct json_object *diff, bool pager);
/* The same as deliver_info(), for LIST of the report: an array of JSON, or the table of
 * show_list(). */
int deliver_list(const struct settings *s, int fd, const struct show_list *list,
		 const struct show_select *select, bool pager);
/* The same for the events of show_timeline(). */
int deliver_timeline(const struct settings *s, int fd, const struct show_select *select,
		     bool picture, bool pager);
/* Writes a stored bundle, joined with its images, to PATH, but never to a terminal. Returns an exit
 * code. */
int deliver_bundle(const struct settings *s, struct stored *stored, const char *path);
