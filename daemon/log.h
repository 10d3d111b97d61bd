/*
 * The only logger of ptsnapd. The loop's thread alone calls it: libraries and job threads return
 * what happened instead.
 */
#pragma once

#include <syslog.h>

#include "proto/base.h"

/* Chooses the target: the journal when stderr is connected to it ($JOURNAL_STREAM), else stderr. */
void log_open(void);
/* One line, without a newline at its end. Control characters, which may come from strangers, are
 * replaced. SNAPSHOT (may be NULL): the id that the line is about. LOG_DEBUG goes to the journal
 * only. */
void log_line(int priority, const char *snapshot, const char *format, ...) PRINTF_LIKE(3, 4);

#define log_debug(...)	 log_line(LOG_DEBUG, NULL, __VA_ARGS__)
#define log_info(...)	 log_line(LOG_INFO, NULL, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, NULL, __VA_ARGS__)
#define log_error(...)	 log_line(LOG_ERR, NULL, __VA_ARGS__)
