/*
 * A report or a bundle that lies in a file, delivered as it was asked for.
 */
#pragma once

#include <stdbool.h>

#include "ctl/base/option.h"
#include "ctl/client/stored.h"

/* The report in FD (borrowed, regular file) to PATH (NULL: not given; "-": stdout). To a file, or
 * with --json=, as JSON; else, when SUMMARY or stdout is a terminal or with --json=off, as the
 * summary of show.h; else as JSON, byte for byte. An exit code. */
int deliver_report(const struct settings *s, int fd, const char *path, bool summary);
/* A stored bundle, made whole, to PATH; refused for a terminal. An exit code. */
int deliver_bundle(const struct settings *s, struct stored *stored, const char *path);
