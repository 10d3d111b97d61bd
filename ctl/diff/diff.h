/*
 * What differs between two reports: functions, durations of calls, threads, gaps, and call stacks.
 *
 * This room compares two reports, A (usually a normal time) and B, and makes a JSON object of what
 * differs. ctl/show makes a page of that object. side.c reads one report as rows, noise.c decides
 * which differences are more than counting noise, diff.c and paths.c (call stacks) put both
 * together, finds.c ranks.
 *
 * Decisions that govern the room:
 * - A function is its name and its image. An image is the same if the build ID is, or else if the
 *   file's name is, without directories and without the numbers behind ".so". Addresses play no
 *   part, so neither ASLR nor an updated file makes a function new. Names that are made of an
 *   address are compared only where the image has one build ID in both reports; elsewhere all such
 *   code of an image is one row.
 * - A thread is its comm: thread IDs say nothing about another time.
 * - Two windows of the same program are never equal. A difference is listed only if noise.h says
 *   that the counts of both reports do not explain it. A function with a large share of the time
 *   but few calls is listed, too, and marked: whether that is chance cannot be told from counts.
 * - The order is that of cost: the difference of CPU time in a second of the window, or, if a
 *   report has no times, of the share of instructions.
 * - A list of a report may be cut. Of a function that is not in a cut list we know only that it had
 *   no more instructions than the last one listed; such a function is never new or gone.
 * - Reports are input of any version. A key that is absent leaves out the comparison that needs it.
 */
#pragma once

#include <stddef.h>

#include <json-c/json.h>

/* Compares the reports A and B. Each list of *ret, the caller's, has at most LIMIT elements
 * (ptsnapctl(1), diff, describes the keys). 0 or -ENOMEM. */
int diff_reports(struct json_object *a, struct json_object *b, size_t limit,
		 struct json_object **ret);
