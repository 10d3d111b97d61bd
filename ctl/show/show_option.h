/*
 * The options of `ptsnapctl decode' that choose how lines look, under the names that libipt's
 * ptdump and ptxed give them.
 */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/decode_options.h"

#define SHOW_OPTIONS_MAX 48u

struct show_options {
	uint64_t show;	/* WORKER_SHOW_* */
	uint64_t given; /* bit I: option I of the table was given */
};

/* Writes the options for getopt_long(3) to TO; option I of the table has the value FIRST + I.
 * Returns the number of options. */
size_t show_option_table(struct option to[static SHOW_OPTIONS_MAX], int first);
/* Notes that option INDEX of the table was given. */
void show_option_take(struct show_options *s, size_t index);
/* Returns whether all given options are valid for VIEW and with each other; prints a message if
 * not. */
bool show_option_check(const struct show_options *s, enum worker_view view);
