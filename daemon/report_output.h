/*
 * The file that a decoder writes a report into. Used by whoever has a bundle decoded.
 */
#pragma once

#include <stdbool.h>

#include "proto/worker.h"

/* A file for one report (proto/report.h, REPORT_DEFAULT_LIMIT) that cannot become larger, whatever
 * who has it does. 0: *ret_fd is the caller's; -errno. */
int report_output_new(int *ret_fd);
/* When the decoder is done: the file ends where its report does. 0, -EFBIG longer than it may be,
 * -ENODATA there is none, or -errno. */
int report_output_end(int fd);
/* RESULT is that of worker_run, or of report_output_end behind it: whether it may have been a
 * stranger's symbol table that the decoder failed at. One that was stopped for its time has none
 * left. */
bool report_output_is_worth_another(int result, const struct worker_outcome *outcome);
