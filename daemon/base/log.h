/*
 * The recorder's log: lines for people, and events with fields for scripts.
 *
 * This room has what all other rooms of the recorder need. log.c is the only logger. aside.c runs
 * work that a stranger can hold up in a thread that can be left behind. unitname.c finds the
 * systemd unit of a process. bucket.c is a token bucket. The sizes of a snapshot's texts are here,
 * too.
 *
 * Decisions that govern the room:
 * - Only the loop's thread logs. Libraries and jobs' threads return what happened instead.
 * - Nothing is written to stdout: it is the traced command's.
 * - Text in a message may come from a stranger, so control characters and characters that reorder
 *   or hide their neighbours are replaced.
 * - The kinds of events have fixed ids, which scripts and dashboards ask for.
 * - Whatever may wait for a traced process, for a mount or for another host runs aside: opening
 *   mapped files, reading /proc, looking up users, writing the file of metrics. The loop gives a
 *   thread that hangs up and goes on; a few such threads are allowed. Nobody waits for them, nor
 *   does the end of the recorder.
 */
#pragma once

#include <stdint.h>
#include <syslog.h>

#include "proto/base.h"

/* Sizes of the texts of a snapshot, with their NUL. */
#define ENTRY_ID_SIZE	  40
#define ENTRY_REASON_SIZE 257
#define ENTRY_ERROR_SIZE  257
#define ENTRY_NAME_SIZE	  64
#define ENTRY_UNIT_SIZE	  256 /* systemd's limit (src/basic/unit-def.h, UNIT_NAME_MAX) */
#define ENTRY_CORE_SIZE	  256 /* NAME_MAX and the NUL */
/* A number that is absent. */
#define ENTRY_ABSENT UINT64_MAX

/* Chooses where lines go: to the journal if stderr is connected to it ($JOURNAL_STREAM), else to
 * stderr. */
void log_open(void);
/* Logs one line; FORMAT has no newline at its end. SNAPSHOT (may be NULL) is the id of the snapshot
 * that the line is about. LOG_DEBUG goes to the journal only. */
void log_line(int priority, const char *snapshot, const char *format, ...) PRINTF_LIKE(3, 4);

#define log_debug(...)	 log_line(LOG_DEBUG, NULL, __VA_ARGS__)
#define log_info(...)	 log_line(LOG_INFO, NULL, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, NULL, __VA_ARGS__)
#define log_error(...)	 log_line(LOG_ERR, NULL, __VA_ARGS__)

/* --- Events --- */

/*
 * The MESSAGE_ID of each kind of event (journalctl MESSAGE_ID=...). Ids were made at random once
 * and never change, as scripts and dashboards ask for them. systemd/ptsnap.catalog has a text for
 * each, which "journalctl -x" shows.
 */

/* The recorder is ready. */
#define LOG_EVENT_STARTED "8607353630e94a41b4885beb621d4e79"
/* A trigger was taken: CPUs are about to be stopped. */
#define LOG_EVENT_SNAPSHOT_BEGUN "e64dd45ce67a4a18b0fc73d7befb1b70"
/* Its report is stored. */
#define LOG_EVENT_SNAPSHOT_WRITTEN "59d4eea1815d42fa8ced3e37df686be1"
/* There is a bundle, and no report. */
#define LOG_EVENT_DECODE_FAILED "65846e98afba4ad583396a72372bf201"
/* Trace or sideband records were lost. */
#define LOG_EVENT_TRACE_LOST "941c11d728e04524bae0e0ba37890163"
/* Rings are smaller than asked for, or some CPUs are not traced. */
#define LOG_EVENT_RINGS_DEGRADED "057fee9d8eee4c8b898b952be9a137ac"
/* A trigger was refused: too many of its kind. */
#define LOG_EVENT_RATE_LIMITED "d4a4744b627c4a419638c91503f67124"
/* Intel PT cannot be had: the sideband alone is recorded. */
#define LOG_EVENT_PT_UNAVAILABLE "a3fc414d44fe4eef8a9f85ff781fc5bb"

/* Fields of an event in the journal. Absent: NULL or "", ENTRY_ABSENT, error 0. "journalctl
 * UNIT=..." finds the field UNIT; "journalctl -u" believes that field only if root wrote it. */
struct log_fields {
	const char *report;	  /* PTSNAP_REPORT_ID */
	const char *trigger;	  /* PTSNAP_TRIGGER */
	const char *trigger_unit; /* PTSNAP_TRIGGER_UNIT, UNIT */
	const char *report_path;  /* PTSNAP_REPORT_PATH */
	uint64_t trigger_pid;	  /* PTSNAP_TRIGGER_PID */
	uint64_t bytes;		  /* PTSNAP_BYTES */
	uint64_t lost;		  /* PTSNAP_LOST */
	uint64_t duration_usec;	  /* PTSNAP_DURATION_USEC */
	int error;		  /* ERRNO: a positive number */
};
#define LOG_NO_FIELDS                                                                     \
	{                                                                                 \
		.trigger_pid = ENTRY_ABSENT, .bytes = ENTRY_ABSENT, .lost = ENTRY_ABSENT, \
		.duration_usec = ENTRY_ABSENT                                             \
	}
/* Logs an event of the kind ID (LOG_EVENT_*): a line of text, with fields. */
void log_event(int priority, const char *id, const struct log_fields *fields, const char *format,
	       ...) PRINTF_LIKE(4, 5);

/* Gets each line that is not LOG_DEBUG, too. ID is NULL for lines that are no events. FN must not
 * log. */
struct log_listener {
	void (*fn)(void *userdata, int priority, const char *id, const struct log_fields *fields,
		   const char *text);
	void *userdata;
};
/* Sets the only listener; NULL: none. */
void log_listen(const struct log_listener *listener);
