/*
 * The report and the summary of one decode, as JSON.
 *
 * The report tells a person what happened: it has the host, the window, CPUs, threads with their
 * last branches and stacks, functions, images, gaps and marks. The summary is one small object for
 * scripts and tests. docs/ptsnap-report-1.schema.json is the report's schema; proto/report.h has
 * its version and its limits.
 *
 * report.c puts the parts in order and decides what is cut. Each part has a file: report_host.c the
 * head, from the manifest; report_cpus.c CPUs, coverage, totals, gaps and the window that was
 * decoded; report_threads.c threads; report_turns.c which thread ran when; report_processes.c
 * processes; report_functions.c functions and images; report_marks.c what is not a branch;
 * report_source.c source lines, inlined functions and demangled names. report_values.c writes
 * single values, also for skim. report_summary.c writes the summary. report_parts.h is inside only.
 *
 * Decisions that govern the room:
 * - The schema is public: keys are only added, with a new minor version.
 * - A list is written element by element by one function, and measured by the same function. What
 *   does not fit the limit is cut, the least important list first, and "cut" says how much.
 * - A value that is not known is null, never 0 and never guessed. Addresses and TSC values are
 *   "0x..." strings; times are nanoseconds relative to the trigger.
 * - A report for one user (permit.h) says nothing of other users: no threads, processes, images,
 *   counts or reasons of theirs.
 * - Every string of a bundle is a stranger's: its length is limited here and json_writer escapes
 *   it. Source lines have a limit of time, because a file can be made to take long.
 *
 * struct report is made by report_write() and freed by it. It borrows the decode and the options.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "decoder/worker/count/decoded.h"
#include "proto/decode_options.h"

/* Writes the report to FD. VERSION is the version of this program. What does not fit
 * OPTIONS->report_limit is cut and listed in "cut", in this order: functions; turns and marks; the
 * threads' last branches; gaps; images; processes; threads; CPUs. 0, -ENOMEM, -E2BIG (the parts
 * that cannot be cut are larger than the limit) or -errno of write. */
int report_write(struct decode *d, const struct decode_options *options, const char *version,
		 int fd);
/* Writes the summary to FD. Uses OPTIONS->hash and ->pretty. Sorts the threads of the tally. 0 or
 * -errno. */
int report_summary(struct decode *d, const struct decode_options *options, int fd);
