/*
 * Writes a report or a bundle to where the user asked for it.
 */
#pragma once

#include <stdbool.h>

#include "ctl/base/option.h"
#include "ctl/client/stored.h"

/*
 * Writes the report in FD (borrowed, a regular file) to PATH ("-": stdout; NULL: the user gave no
 * path, also stdout) and returns an exit code:
 * - with --json=short or --json=pretty as JSON in that format;
 * - without a path, when SUMMARY is true, stdout is a terminal or --json=off was given, as the text
 *   of show.h;
 * - else the file's bytes as they are.
 */
int deliver_report(const struct settings *s, int fd, const char *path, bool summary);
/* Writes a stored bundle, joined with its images, to PATH, but never to a terminal. Returns an exit
 * code. */
int deliver_bundle(const struct settings *s, struct stored *stored, const char *path);
