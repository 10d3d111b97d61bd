/*
 * The report and the summary of one decode, as JSON.
 *
 * The report tells a person what happened: it has the host, the window, CPUs, threads with their
 * last branches and stacks, functions, images, gaps and marks. The summary is one small object for
 * scripts and tests. docs/ptsnap-report-2.schema.json is the report's schema; proto/report.h has
 * its version and its limits.
 *
 * report.c puts the parts in order and decides what is cut. Each part has a file: report_host.c the
 * head, from the manifest; report_cpus.c CPUs, coverage, totals, gaps and the window that was
 * decoded; report_threads.c threads; report_states.c what each was doing at the trigger,
 * report_asleep.c where it slept, by /proc;
 * report_places.c the addresses that the others mention;
 * report_suspects.c and suspects_threads.c what stands out; report_turns.c which thread ran when;
 * report_processes.c processes; report_functions.c functions and images; report_marks.c what is not
 * a branch; report_source.c source lines, inlined functions and demangled names. report_values.c
 * writes single values, also for skim. report_summary.c writes the summary. report_parts.h is
 * inside only.
 *
 * Decisions that govern the room:
 * - The schema is public: keys are only added, with a new minor version.
 * - An address of code is written once, in the list of places. All other parts have its index, by
 *   report_place(). A place that no kept element mentions is not written.
 * - A suspect is found by a rule that ptsnap-report(5) states, from evidence of this recording. A
 *   rule has a least number and a least duration; in doubt there is no suspect. The report has
 *   values, and ptsnapctl makes the words.
 * - A list is written element by element by one function, and measured by the same function. If the
 *   report does not fit the limit, lists are cut, and "cut" says how much. However long a list is,
 *   every other list keeps its share.
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
#include "proto/json.h"
#include "sideband/timeline/timeline.h"

/* Writes the report to FD. VERSION is the version of this program. A report that does not fit
 * OPTIONS->report_limit is cut, and "cut" lists what is missing. Each list, and the threads' last
 * branches together, have a share of the room that nothing else can take. What they do not need
 * goes to others, in this order: suspects; CPUs; threads; processes; images; gaps; functions; last
 * branches; marks; turns. 0, -ENOMEM, -E2BIG (the parts that cannot be cut are larger than the
 * limit) or -errno of write. */
int report_write(struct decode *d, const struct decode_options *options, const char *version,
		 int fd);
/* Writes the summary to FD. Uses OPTIONS->hash and ->pretty. Sorts the threads of the tally. 0 or
 * -errno. */
int report_summary(struct decode *d, const struct decode_options *options, int fd);

/* "returnStack": which rule OPTIONS ask for, and what depends on it. */
void report_return_stack(struct json_writer *w, const struct flow_stats *total,
			 const struct decode_options *options);

/* --- Values as JSON, also for skim: report_values.c ---
 *
 * An unknown value is null; addresses and TSC values are "0x..." strings; times are perf
 * nanoseconds relative to the trigger. */

/* MANIFEST_ABSENT gives null. */
void report_u64(struct json_writer *w, const char *key, uint64_t v);
void report_hex(struct json_writer *w, const char *key, uint64_t v);
/* MANIFEST_ANY gives null. */
void report_id(struct json_writer *w, const char *key, uint32_t v);
/* 0 gives null. */
void report_tsc(struct json_writer *w, const char *key, uint64_t tsc);
/* Perf time NS relative to TRIGGER (perf ns); null if either is MANIFEST_ABSENT. */
void report_since(struct json_writer *w, const char *key, uint64_t ns, uint64_t trigger);
/* As report_percent; null where the trace of D has no branches that could be decoded. */
void report_percent_decoded(struct json_writer *w, const char *key, const struct decode *d,
			    double percent);
/* With two digits behind the point; a negative value gives null. */
void report_percent(struct json_writer *w, const char *key, double percent);
/* "pid" of PROCESS (any of its threads) and "tid" of THREAD; NULL gives null. */
void report_ids(struct json_writer *w, const struct timeline_thread *process,
		const struct timeline_thread *thread);
/* "exactPercent", "instructionsExact" and "mayHaveChanged" of TOTAL. */
void report_exact(struct json_writer *w, const struct flow_stats *total);
/* The first MAX bytes of V; NULL gives null. */
void report_string_cut(struct json_writer *w, const char *key, const char *v, size_t max);
/* A function without a name: "FILE@0xADDRESS", FILE being the last component of PATH and ADDRESS
 * that of the function in the file. "FILE+0xOFFSET" for memory, which has no such addresses (0);
 * "FILE" for FUNCTIONS_WHOLE_IMAGE. */
void report_unnamed(struct json_writer *w, const char *key, const char *path, uint64_t address,
		    uint64_t offset);
/* The list "filters": what of the execution the configuration leaves out; null: unknown. */
void report_filters(struct json_writer *w, const struct manifest *m);
/* An element of "cut": of TOTAL elements of WHAT only KEPT are written. Writes nothing if KEPT is
 * TOTAL. */
void report_cut_line(struct json_writer *w, const char *what, uint64_t kept, uint64_t total);
