/*
 * Reads a report as rows of functions, threads and call stacks.
 */
#include "ctl/diff/side.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/base/field.h"
#include "ctl/base/place.h"
#include "proto/base.h"
#include "proto/perf/ptpacket.h"

#define UNNAMED "[code without names]"

static double number(struct json_object *o, const char *path)
{
	uint64_t v = 0;

	field_u64(o, path, &v);
	return (double)v;
}

/* --- Tables --- */

/* The row with KEY; it is made if there is none. NULL: no memory. The name and image of a new row
 * are the caller's to set. */
static struct side_row *row_of(struct side_table *t, const char *key)
{
	struct json_object *found, *index;

	if (json_object_object_get_ex(t->index, key, &found))
		return &t->rows[json_object_get_uint64(found)];
	if (ARRAY_RESERVE(t->rows, t->capacity, t->n + 1) < 0)
		return NULL;
	index = json_object_new_uint64(t->n);
	if (!index || json_object_object_add(t->index, key, index) < 0) {
		json_object_put(index);
		return NULL;
	}
	t->rows[t->n] = (struct side_row){.other = SIZE_MAX};
	return &t->rows[t->n++];
}

void side_match(struct side_table *a, struct side_table *b)
{
	json_object_object_foreach(a->index, key, value)
	{
		struct json_object *found;
		const size_t i = json_object_get_uint64(value);

		if (!json_object_object_get_ex(b->index, key, &found))
			continue;
		a->rows[i].other = json_object_get_uint64(found);
		b->rows[a->rows[i].other].other = i;
	}
}

/* --- Images --- */

/* The length of PATH's file name from *ret on, without " (deleted)" and the numbers behind ".so".
 */
static size_t short_name(const char *path, const char **ret)
{
	static const char deleted[] = " (deleted)";
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *so;
	size_t n = strlen(name);

	*ret = name;
	if (n > sizeof(deleted) - 1 && strcmp(name + n - (sizeof(deleted) - 1), deleted) == 0)
		n -= sizeof(deleted) - 1;
	so = strstr(name, ".so.");
	if (so && strspn(so + 4, "0123456789.") >= (size_t)(name + n - so) - 4)
		n = (size_t)(so - name) + 3;
	return n;
}

static int read_builds(struct side *s)
{
	s->builds = json_object_new_object();
	for (size_t i = 0; s->builds && i < field_count(s->report, "images"); i++) {
		struct json_object *image = field_at(s->report, "images", i), *name;
		const char *build = field_text(image, "buildId"), *path = field_text(image, "path");
		const char *text;
		size_t n;

		if (!build || !path)
			continue;
		n = short_name(path, &text);
		name = json_object_new_string_len(text, (int)MIN_OF(n, (size_t)4096));
		if (!name || json_object_object_add(s->builds, build, name) < 0) {
			json_object_put(name);
			return -ENOMEM;
		}
	}
	return s->builds ? 0 : -ENOMEM;
}

/* The name of IMAGE in keys, as NAMES has it; the caller's. NULL: no memory. */
static char *image_key(const struct side *names, struct json_object *image)
{
	const char *build = field_text(image, "buildId"), *path = field_text(image, "path");
	struct json_object *found;
	const char *text;
	size_t n;

	if (build && json_object_object_get_ex(names->builds, build, &found))
		return strdup(json_object_get_string(found));
	if (!path)
		return strdup("");
	n = short_name(path, &text);
	return strndup(text, n);
}

/* --- Functions --- */

/* Whether NAME is "FILE@0xADDRESS" or "FILE+0xOFFSET", as of code without symbols. */
static bool is_address(const char *name)
{
	const char *x = strrchr(name, 'x');

	return x && x - name >= 2 && x[-1] == '0' && (x[-2] == '@' || x[-2] == '+') &&
	       x[1] != '\0' && x[1 + strspn(x + 1, "0123456789abcdef")] == '\0';
}

static struct json_object *image_of(const struct side *s, struct json_object *o)
{
	uint64_t index;

	return field_u64(o, "image", &index) ? field_at(s->report, "images", (size_t)index) : NULL;
}

const char *side_image_path(const struct side *s, struct json_object *o)
{
	return field_text(image_of(s, o), "path");
}

/* The key of F, a function or a place, and the name under which its row is shown. 0 or -ENOMEM. */
static int function_key(const struct side *s, const struct side *names, const struct side *other,
			struct json_object *f, char **ret_key, const char **ret_name)
{
	const char *name = field_text(f, "name"), *linkage = field_text(f, "linkage");
	struct json_object *image = image_of(s, f);
	const char *build = field_text(image, "buildId");
	CLEANUP_FREE char *image_name = image_key(names, image);

	if (!image_name)
		return -ENOMEM;
	if (!name ||
	    (is_address(name) && !(build && json_object_object_get_ex(other->builds, build, NULL))))
		name = linkage = UNNAMED;
	if (asprintf(ret_key, "%s\n%s", image_name, linkage ? linkage : name) < 0) {
		*ret_key = NULL;
		return -ENOMEM;
	}
	*ret_name = name;
	return 0;
}

static int add_function(struct side *s, const struct side *names, const struct side *other,
			struct json_object *f)
{
	CLEANUP_FREE char *key = NULL;
	struct side_row *row;
	const char *name;
	uint64_t ns;

	if (function_key(s, names, other, f, &key, &name) < 0)
		return -ENOMEM;
	row = row_of(&s->functions, key);
	if (!row)
		return -ENOMEM;
	row->name = name;
	row->image = side_image_path(s, f);
	row->durations = row->parts > 0 ? NULL : field_get(f, "durations");
	row->parts++;
	row->n += number(f, "calls");
	row->insns += number(f, "selfInstructions");
	row->nsec += number(f, "selfNSec");
	s->functions_nsec += number(f, "selfNSec");
	s->has_nsec = s->has_nsec && field_u64(f, "selfNSec", &ns);
	return 0;
}

int side_function_of(const struct side *s, const struct side *names, const struct side *other,
		     struct json_object *frame, const struct side_row **ret)
{
	CLEANUP_FREE char *key = NULL;
	struct json_object *found;
	const char *name;

	if (function_key(s, names, other, frame, &key, &name) < 0)
		return -ENOMEM;
	*ret = json_object_object_get_ex(s->functions.index, key, &found)
		       ? &s->functions.rows[json_object_get_uint64(found)]
		       : NULL;
	return 0;
}

int side_functions(struct side *s, const struct side *names, const struct side *other)
{
	const size_t n = field_count(s->report, "functions");
	int r = 0;

	s->has_nsec = true;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_function(s, names, other, field_at(s->report, "functions", i));
	if (n > 0)
		s->floor_insns =
			number(field_at(s->report, "functions", n - 1), "selfInstructions");
	return r;
}

/* --- Call stacks --- */

/* The key of thread T's stack: its comm, and its frames, one a line. 0 or -ENOMEM. */
static int path_key(const struct side *s, const struct side *names, const struct side *other,
		    struct json_object *t, char **ret)
{
	CLEANUP_FREE char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int r = out ? 0 : -ENOMEM;

	if (out)
		fputs(field_text(t, "comm"), out);
	for (size_t i = 0; r == 0 && i < field_count(t, "stack"); i++) {
		CLEANUP_FREE char *key = NULL;
		const char *name;

		r = function_key(s, names, other, place_of_frame(s->report, t, i), &key, &name);
		if (r == 0)
			fprintf(out, "\n%s", key);
	}
	if (out && fclose(out) == EOF)
		r = -ENOMEM;
	if (r == 0)
		*ret = TAKE_PTR(text);
	return r;
}

int side_paths(struct side *s, const struct side *names, const struct side *other)
{
	for (size_t i = 0; i < field_count(s->report, "threads"); i++) {
		struct json_object *t = field_at(s->report, "threads", i);
		CLEANUP_FREE char *key = NULL;
		struct side_row *row;

		if (!field_text(t, "comm") || field_count(t, "stack") == 0)
			continue;
		if (path_key(s, names, other, t, &key) < 0 || !(row = row_of(&s->paths, key)))
			return -ENOMEM;
		row->name = field_text(t, "comm");
		row->thread = t;
		row->n++;
		s->stacks++;
	}
	return 0;
}

/* --- Threads --- */

static int add_thread(struct side *s, struct json_object *t)
{
	const char *comm = field_text(t, "comm"), *window = field_text(t, "window");
	struct side_row *row;

	if (!comm)
		return 0;
	row = row_of(&s->threads, comm);
	if (!row)
		return -ENOMEM;
	row->name = comm;
	row->parts++;
	if (window && strcmp(window, "last-stretch") == 0)
		return 0;
	row->insns += number(t, "instructions");
	row->nsec += number(t, "cpuNSec");
	s->nsec += number(t, "cpuNSec");
	return 0;
}

static int read_threads(struct side *s)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < field_count(s->report, "threads"); i++)
		r = add_thread(s, field_at(s->report, "threads", i));
	for (size_t i = 0; i < field_count(s->report, "turns"); i++) {
		const char *comm = field_text(field_at(s->report, "turns", i), "comm");
		struct json_object *found;

		if (comm && json_object_object_get_ex(s->threads.index, comm, &found))
			s->threads.rows[json_object_get_uint64(found)].n++;
	}
	return r;
}

/* --- The whole --- */

static double mean_window(struct json_object *report)
{
	const size_t n = field_count(report, "cpus");
	double sum = 0;
	size_t traced = 0;
	uint64_t ns;

	for (size_t i = 0; i < n; i++)
		if (field_u64(field_at(report, "cpus", i), "gotNSec", &ns) && ns > 0) {
			sum += (double)ns;
			traced++;
		}
	return traced > 0 ? sum / (double)traced / 1e9 : 0;
}

/* The MTC period in ns: 2^mtcPeriod ticks of the crystal, in ticks of TSC, by the clock of perf. 0
 * with CYC packets, which tell the time between MTC packets, without MTC packets, or if one of the
 * numbers is not known. */
static double time_step(struct json_object *report)
{
	uint64_t config, period, numerator, denominator, mult, shift;

	if (field_u64(report, "configuration.attr.config", &config) &&
	    (config & (PT_CONFIG_CYC | PT_CONFIG_MTC)) != PT_CONFIG_MTC)
		return 0;
	if (!field_u64(report, "configuration.mtcPeriod", &period) || period > 15 ||
	    !field_u64(report, "configuration.tscArtRatio.numerator", &numerator) ||
	    !field_u64(report, "configuration.tscArtRatio.denominator", &denominator) ||
	    denominator == 0 || !field_u64(report, "configuration.clock.timeMult", &mult) ||
	    !field_u64(report, "configuration.clock.timeShift", &shift) || shift > 63)
		return 0;
	return ldexp((double)numerator / (double)denominator * (double)mult,
		     (int)period - (int)shift);
}

/* Whether the list WHAT of REPORT is cut, or the decoder's table of it was full. */
static bool is_cut(struct json_object *report, const char *what)
{
	const size_t n = strlen(what);

	for (size_t i = 0; i < field_count(report, "cut"); i++) {
		const char *text = field_text(field_at(report, "cut", i), "what");

		if (text && strncmp(text, what, n) == 0 &&
		    (text[n] == '\0' || strcmp(text + n, "Unlisted") == 0))
			return true;
	}
	return false;
}

int side_read(struct side *s, struct json_object *report)
{
	int r;

	*s = (struct side){.report = report};
	s->functions.index = json_object_new_object();
	s->threads.index = json_object_new_object();
	s->paths.index = json_object_new_object();
	if (!s->functions.index || !s->threads.index || !s->paths.index)
		return -ENOMEM;
	s->seconds = mean_window(report);
	s->step = time_step(report);
	s->insns = number(report, "totals.instructions");
	s->functions.cut = is_cut(report, "functions");
	s->threads.cut = is_cut(report, "threads");
	s->turns_cut = is_cut(report, "turns");
	r = read_builds(s);
	return r < 0 ? r : read_threads(s);
}

void side_free(struct side *s)
{
	json_object_put(s->builds);
	json_object_put(s->functions.index);
	json_object_put(s->threads.index);
	json_object_put(s->paths.index);
	free(s->functions.rows);
	free(s->threads.rows);
	free(s->paths.rows);
}
