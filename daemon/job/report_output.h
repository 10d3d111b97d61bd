/*
 * The file that a decoder writes a report into. Used by whoever has a bundle decoded.
 */
#pragma once

/* A file for one report (proto/report.h, REPORT_DEFAULT_LIMIT) that cannot become larger, whatever
 * who has it does. 0: *ret_fd is the caller's; -errno. */
int report_output_new(int *ret_fd);
/* When the decoder is done: the file ends where its report does. 0, -EFBIG longer than it may be,
 * -ENODATA there is none, or -errno. */
int report_output_end(int fd);
