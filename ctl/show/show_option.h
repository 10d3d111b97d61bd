/*
 * The options of `ptsnapctl decode' that say how lines look, under the names that libipt's ptdump
 * and ptxed give them.
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
	uint64_t given; /* a bit for each place in the table */
};

/* The options for getopt_long, the first with the value FIRST; returns how many. */
size_t show_option_table(struct option to[static SHOW_OPTIONS_MAX], int first);
/* The option of that place in the table. */
void show_option_take(struct show_options *s, size_t index);
/* Whether all that was given fits VIEW and goes together; else a message was printed. */
bool show_option_check(const struct show_options *s, enum worker_view view);
