/*
 * export_stream FORMAT[=WEIGHT] [OPTION=VALUE...] <STREAM >FILE: writes a call stream, or for
 * "brstack" the lines of
 * --view=branches, in FORMAT, as `ptsnapctl export' does. Prints what exporter_finish() told to
 * standard error. The stream need not come from a decoder.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctl/calls/slice.h"
#include "ctl/export/export.h"
#include "proto/base.h"

static char line[CALLSTREAM_MAX_LINE];

static int get_line(void)
{
	if (!fgets(line, sizeof(line), stdin))
		return -ENODATA;
	line[strcspn(line, "\n")] = '\0';
	return 0;
}

/* Takes OPTION=VALUE of a slice. */
static int take_option(struct slice *slice, const char *text)
{
	struct option table[SLICE_OPTIONS];

	slice_option_table(table, 0);
	for (size_t i = 0; i < SLICE_OPTIONS; i++) {
		size_t size = strlen(table[i].name);

		if (strncmp(text, table[i].name, size) == 0 && text[size] == '=')
			return slice_option_take(slice, i, text + size + 1);
	}
	return 2;
}

static int calls(const char *name, const struct slice *slice)
{
	static const char *const weights[] = {"collapsed", "collapsed=wall", "collapsed=insns"};
	CLEANUP(exporter_freep) struct exporter *e = NULL;
	CLEANUP(slicer_freep) struct slicer *s = NULL;
	const struct export_format *format = export_format_find(name);
	struct callstream_item item;
	struct exporter_told told;
	unsigned weight = 0;
	int r;

	for (unsigned i = 1; i < ARRAY_SIZE(weights); i++)
		if (strcmp(name, weights[i]) == 0) {
			weight = i;
			format = export_format_find(weights[0]);
		}
	if (!format)
		return -EINVAL;
	r = exporter_new(format, (enum export_weight)weight, STDOUT_FILENO, &e);
	if (r == 0)
		r = slicer_new(slice, exporter_take, e, &s);
	while (r == 0 && get_line() == 0) {
		r = callstream_parse(line, &item);
		if (r == 0)
			r = slice_is_given(slice) ? slicer_take(s, &item) : exporter_take(e, &item);
	}
	if (r == 0)
		r = exporter_finish(e, &told);
	if (r == 0)
		fprintf(stderr, "calls %ju cut %ju folded %ju\n", (uintmax_t)told.calls,
			(uintmax_t)told.cut, (uintmax_t)told.folded);
	return r;
}

static int branches(void)
{
	CLEANUP(brstack_freep) struct brstack *b = NULL;
	uint64_t n;
	int r = brstack_new(STDOUT_FILENO, &b);

	while (r == 0 && get_line() == 0)
		r = brstack_take(b, line);
	if (r == 0)
		r = brstack_finish(b, &n);
	if (r == 0)
		fprintf(stderr, "branches %ju\n", (uintmax_t)n);
	return r;
}

int main(int argc, char **argv)
{
	struct slice slice = {0};
	int r;

	for (int i = 2; i < argc; i++)
		if (take_option(&slice, argv[i]) != 0)
			return 2;
	if (argc < 2)
		return 2;
	r = strcmp(argv[1], "brstack") == 0 ? branches() : calls(argv[1], &slice);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-r));
	return r < 0;
}
