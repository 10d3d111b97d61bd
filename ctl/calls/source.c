/*
 * The options that say what a verb decodes, and with which symbols.
 */
#include "ctl/calls/calls.h"

#include "ctl/base/say.h"
#include "proto/base.h"

enum { WORKER, SYSROOT, SYMBOLS, DEBUGINFOD, NO_NAMES, LINES };
static const struct option options[SOURCE_OPTIONS] = {
	{"worker", required_argument, NULL, WORKER},
	{"sysroot", required_argument, NULL, SYSROOT},
	{"symbols", required_argument, NULL, SYMBOLS},
	{"debuginfod", no_argument, NULL, DEBUGINFOD},
	{"no-names", no_argument, NULL, NO_NAMES},
	{"lines", no_argument, NULL, LINES},
};

void source_option_table(struct option to[static SOURCE_OPTIONS], int first)
{
	for (size_t i = 0; i < SOURCE_OPTIONS; i++) {
		to[i] = options[i];
		to[i].val += first;
	}
}

static int take_symbols(struct calls_source *s, const char *directory)
{
	if (s->n_symbols == ARRAY_SIZE(s->symbols))
		return say_error(EXIT_CODE_USAGE, "--symbols=%s: give up to %zu directories",
				 directory, ARRAY_SIZE(s->symbols));
	s->symbols[s->n_symbols++] = directory;
	return 0;
}

int source_option_take(struct calls_source *s, size_t index, const char *value)
{
	switch (index) {
	case WORKER: s->worker = value; return 0;
	case SYSROOT: s->sysroot = value; return 0;
	case SYMBOLS: return take_symbols(s, value);
	case DEBUGINFOD: s->debuginfod = true; return 0;
	case LINES: s->lines = true; return 0;
	default: s->no_names = true; return 0;
	}
}
