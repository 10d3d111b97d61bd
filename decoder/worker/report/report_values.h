/*
 * How the worker writes values as JSON: null for what is not known, "0x..." strings for addresses
 * and TSC values, perf nanoseconds relative to the trigger for times. Also used by the summary and
 * by skim.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/json.h"
#include "sideband/timeline/timeline.h"

/* MANIFEST_ABSENT gives null. */
void report_u64(struct json_writer *w, const char *key, uint64_t v);
void report_hex(struct json_writer *w, const char *key, uint64_t v);
/* MANIFEST_ANY gives null. */
void report_id(struct json_writer *w, const char *key, uint32_t v);
/* 0 gives null. */
void report_tsc(struct json_writer *w, const char *key, uint64_t tsc);
/* Perf time NS relative to TRIGGER (perf ns); null if either is MANIFEST_ABSENT. */
void report_since(struct json_writer *w, const char *key, uint64_t ns, uint64_t trigger);
/* With two digits behind the point; a negative value gives null. */
void report_percent(struct json_writer *w, const char *key, double percent);
/* "pid" of PROCESS (any of its threads) and "tid" of THREAD; NULL gives null. */
void report_ids(struct json_writer *w, const struct timeline_thread *process,
		const struct timeline_thread *thread);
/* The first MAX bytes of V; NULL gives null. */
void report_string_cut(struct json_writer *w, const char *key, const char *v, size_t max);
/* "FILE+0xOFFSET", FILE being the last component of PATH; "FILE" for FUNCTIONS_WHOLE_IMAGE. */
void report_file_place(struct json_writer *w, const char *key, const char *path, uint64_t offset);
/* An element of "cut": of TOTAL elements of WHAT only KEPT are written. Writes nothing if KEPT is
 * TOTAL. */
void report_cut_line(struct json_writer *w, const char *what, uint64_t kept, uint64_t total);
