/*
 * One run of ptsnap-decode for ptsnapctl: opens the input and runs the worker. All functions print
 * what is wrong and return an exit code.
 */
#pragma once

#include "ctl/decode/decode_option.h"

/* Opens the file Q->bundle. Its first bytes say whether it is a perf.data or a bundle. A bundle in
 * the state directory of a recorder is joined with the images beside it. Q->bundle may also be an
 * ID or `latest': a name without slash and dot, which is no file, is asked of the recorder. *ret_fd
 * is the caller's bundle. */
int decode_open(const struct decode_request *q, int *ret_fd);
/* Decodes the bundle BUNDLE_FD with Q->options to OUTPUT_FD, both borrowed. When CANCEL_FD is
 * readable, the worker is ended (-1: never), which is EXIT_CODE_FAILURE without a message. */
int decode_run_worker(const struct decode_request *q, int bundle_fd, int output_fd, int cancel_fd);
