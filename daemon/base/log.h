/*
 * The only logger of ptsnapd. The loop's thread alone calls it: libraries and job threads return
 * what happened instead.
 */
#pragma once

#include <stdint.h>
#include <syslog.h>

#include "daemon/base/entry_size.h"
#include "proto/base.h"

/* Chooses the target: the journal when stderr is connected to it ($JOURNAL_STREAM), else stderr. */
void log_open(void);
/* One line, without a newline at its end. Control characters, which may come from strangers, are
 * replaced. SNAPSHOT (may be NULL): the id that the line is about. LOG_DEBUG goes to the journal
 * only. */
void log_line(int priority, const char *snapshot, const char *format, ...) PRINTF_LIKE(3, 4);

/* Fields of a line in the journal, each where it is known: NULL or "", ENTRY_ABSENT, 0 where not.
 * UNIT= is what "journalctl UNIT=..." finds; "journalctl -u" believes that field of root alone. */
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
/* A line of the kind ID (log_events.h), with what is known besides its text. */
void log_event(int priority, const char *id, const struct log_fields *fields, const char *format,
	       ...) PRINTF_LIKE(4, 5);

/* Somebody hears of each line that is not LOG_DEBUG, too: one at most; FN NULL: nobody. ID is NULL
 * for lines that are no events. FN does not log. */
struct log_listener {
	void (*fn)(void *userdata, int priority, const char *id, const struct log_fields *fields,
		   const char *text);
	void *userdata;
};
void log_listen(const struct log_listener *listener);

#define log_debug(...)	 log_line(LOG_DEBUG, NULL, __VA_ARGS__)
#define log_info(...)	 log_line(LOG_INFO, NULL, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, NULL, __VA_ARGS__)
#define log_error(...)	 log_line(LOG_ERR, NULL, __VA_ARGS__)
