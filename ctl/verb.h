/*
 * The verbs of ptsnapctl: a cmd_*.c for each verb, or for several that are about the same thing.
 *
 * main.c parses the options before the verb, finds the verb in a table, and runs it. A verb parses
 * its own options with option_next() and returns an exit code (enum exit_code in ctl/base/say.h).
 * The table has the help text of each verb, so that `ptsnapctl help' needs no verb to run.
 *
 * Most verbs are one call to the recorder (ctl/client) and some lines of output. decode and export
 * need no recorder: they work on files (ctl/decode, ctl/perfdata), and decode starts ptsnap-decode.
 *
 * Decisions that govern the room:
 * - ptsnapctl runs as the user who called it and has no other rights. It parses bundles, perf.data
 *   and JSON, but leaves ELF, DWARF and trace packets to the sandboxed ptsnap-decode.
 * - It asks, is handed a file descriptor, and copies the data out; the recorder formats nothing.
 * - A verb prints text for people on a terminal, and JSON with --json or where a program reads the
 *   output. The lines of text may change; the JSON is a documented interface.
 */
#pragma once

#include "ctl/base/option.h"
#include "ctl/calls/slice.h"
#include "ctl/show/show.h"
#include "proto/decode_options.h"

/* Runs a verb: ARGV[0] is its name. Returns an exit code. */
typedef int (*verb_fn)(struct settings *s, int argc, char **argv);

int cmd_snapshot(struct settings *s, int argc, char **argv);
int cmd_list(struct settings *s, int argc, char **argv);
int cmd_fetch(struct settings *s, int argc, char **argv);
int cmd_pin(struct settings *s, int argc, char **argv);
int cmd_unpin(struct settings *s, int argc, char **argv);
int cmd_delete(struct settings *s, int argc, char **argv);
int cmd_check(struct settings *s, int argc, char **argv);
int cmd_reload(struct settings *s, int argc, char **argv);
int cmd_trigger(struct settings *s, int argc, char **argv);
int cmd_monitor(struct settings *s, int argc, char **argv);
int cmd_yield(struct settings *s, int argc, char **argv);
int cmd_status(struct settings *s, int argc, char **argv);
int cmd_decode(struct settings *s, int argc, char **argv);
int cmd_info(struct settings *s, int argc, char **argv);
int cmd_diff(struct settings *s, int argc, char **argv);
int cmd_view(struct settings *s, int argc, char **argv);
int cmd_calls(struct settings *s, int argc, char **argv);
int cmd_timeline(struct settings *s, int argc, char **argv);
/* The verbs branches and insns. */
int cmd_listing(struct settings *s, int argc, char **argv);
int cmd_export(struct settings *s, int argc, char **argv);
/* The verbs functions, threads, processes, images, gaps, turns. */
int cmd_tables(struct settings *s, int argc, char **argv);

/* --- Reports: report.c --- */

/* The rows of a report that the options of a slice select. Texts are borrowed. */
struct show_select select_of(const struct slice *s);

/* The report that is wanted. */
struct report_wanted {
	/* The ID of a stored snapshot, latest, a saved report, or a bundle or perf.data, which is
	 * decoded. */
	const char *operand;
	/* Names of lists of the report, the last one NULL: where a stored report lacks a part of
	 * one of them, its bundle is decoded. NULL: the report as it is. */
	const char *const *lists;
	/* Not zero: a report about this part alone, for which the bundle is decoded. */
	struct decode_slice slice;
};

/* Opens the report that W wants; *ret_fd is the caller's. Returns an exit code. */
int report_open(struct settings *s, const struct report_wanted *w, int *ret_fd);
