/*
 * What functions have no names, and what would give them names.
 *
 * A file without symbols has its functions by address. Code that an interpreter or a just-in-time
 * compiler runs has names only if the program writes them down, which must be switched on.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ctl/base/field.h"
#include "ctl/base/say.h"
#include "ctl/show/page.h"
#include "ctl/show/show_private.h"
#include "proto/base.h"

#define MAX_IMAGES 100000u
#define MAX_FILES  3u  /* that are named */
#define LEAST	   1u  /* percent of the instructions without names that is worth a line */
#define MUCH	   10u /* percent of the instructions that make an interpreter worth a line */

static const struct interpreter {
	const char *file; /* how its file's name begins */
	const char *hint;
} interpreters[] = {
	{"python3", "`python3 -X perf' (3.12 or newer) names Python's functions"},
	{"libpython3", "`python3 -X perf' (3.12 or newer) names Python's functions"},
	{"node", "`node --perf-prof' or `--perf-basic-prof' names JavaScript's functions"},
	{"libnode.so", "`node --perf-prof' or `--perf-basic-prof' names JavaScript's functions"},
	{"libjvm.so",
	 "perf's agent libperf-jvmti.so, or `jcmd PID Compiler.perfmap' before, names Java's"},
	{"libcoreclr.so", "`DOTNET_PerfMapEnabled=1' names the functions of .NET"},
};

struct unnamed {
	uint64_t total;	   /* instructions of the report */
	uint64_t files;	   /* of them in files, in functions without a name */
	uint64_t memory;   /* in memory that is no file, likewise */
	bool memory_named; /* memory that is no file has functions with names */
	size_t n_files;
	struct {
		const char *path;
		uint64_t insns;
	} most[MAX_FILES];
};

/* Where the lines go: to the summary, or in paragraphs to a page. */
struct sink {
	FILE *out;
	const struct page *page; /* NULL: the summary */
	bool terminal;		 /* a person reads it */
	bool any;		 /* it has a line */
	const char *label;
	struct page_text text;
};

/* Where the text of a line goes that begins with LABEL; NULL: no memory. */
static FILE *begin_line(struct sink *s, const char *label)
{
	s->label = label;
	if (!s->page) {
		show_label(s->out, label);
		return s->out;
	}
	if (!s->any)
		fputc('\n', s->out);
	s->any = true;
	page_begin(&s->text);
	return s->text.out;
}

static void end_line(struct sink *s)
{
	if (s->page)
		page_end(s->page, &s->text, s->label, PAGE_LABEL, 0);
	else
		fputc('\n', s->out);
}

static unsigned percent(uint64_t part, uint64_t all)
{
	return all > 0 ? (unsigned)((unsigned __int128)part * 100 / all) : 0;
}

/* Memory that no file was mapped into (kernel/events/core.c, perf_event_mmap_event(); names of
 * prctl(PR_SET_VMA)), or that only processes share. */
static bool is_memory(const char *path)
{
	return strncmp(path, "//", 2) == 0 || strncmp(path, "[anon", 5) == 0 ||
	       strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "/anon_hugepage", 14) == 0 ||
	       strncmp(path, "/dev/zero", 9) == 0;
}

/* What a just-in-time compiler wrote down of its code: jit-PID.dump. */
static bool is_dump(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');

	return slash && dot && strncmp(slash + 1, "jit-", 4) == 0 && strcmp(dot, ".dump") == 0;
}

static void add_file(struct unnamed *u, const char *path, uint64_t insns)
{
	size_t at = MIN_OF(u->n_files, (size_t)MAX_FILES);

	u->n_files++;
	u->files += insns;
	for (; at > 0 && u->most[at - 1].insns < insns; at--)
		if (at < MAX_FILES)
			u->most[at] = u->most[at - 1];
	if (at == MAX_FILES)
		return;
	u->most[at].path = path;
	u->most[at].insns = insns;
}

static void read_images(struct json_object *r, struct unnamed *u)
{
	size_t n = MIN_OF(field_count(r, "images"), (size_t)MAX_IMAGES);

	(void)field_u64(r, "totals.instructions", &u->total);
	for (size_t i = 0; i < n; i++) {
		struct json_object *image = field_at(r, "images", i);
		const char *path = field_text(image, "path");
		uint64_t insns = 0, unnamed = 0;

		if (!path || !field_u64(image, "instructions", &insns) ||
		    !field_u64(image, "unnamedInstructions", &unnamed))
			continue;
		if (is_memory(path) || is_dump(path)) {
			u->memory += unnamed;
			u->memory_named |= unnamed < insns;
		} else if (path[0] == '/' && unnamed > 0) {
			add_file(u, path, unnamed);
		}
	}
}

/* Whether REPORT is of this host. */
static bool is_here(struct json_object *report)
{
	const char *name = field_text(report, "host.hostname");
	struct utsname host;

	return name && uname(&host) == 0 && strcmp(host.nodename, name) == 0;
}

/* Only a person at the host itself is told of packages. */
static void put_packages(FILE *out, struct json_object *report, const struct unnamed *u,
			 bool terminal)
{
	const char *paths[MAX_FILES];
	struct packages packages = {.n = 0};
	size_t n = MIN_OF(u->n_files, (size_t)MAX_FILES);

	for (size_t i = 0; i < n; i++)
		paths[i] = u->most[i].path;
	if (terminal && is_here(report))
		packages_find(paths, n, &packages);
	fputs("symbols: ", out);
	for (size_t i = 0; i < packages.n; i++)
		fprintf(out, "%s%s%s", i > 0 ? ", " : "packages ", packages.names[i],
			strcmp(packages.names[i], "libc6") == 0 ? "-dbg" : "-dbgsym");
	if (packages.n == 0)
		fputs("debug packages, or `ptsnapctl decode --debuginfod'", out);
}

/* The first N of the files with most instructions without names. */
static void put_files(FILE *out, const struct unnamed *u, size_t n)
{
	fprintf(out, "%u %% of the instructions: ", percent(u->files, u->total));
	for (size_t i = 0; i < n; i++) {
		fputs(i > 0 ? ", " : "", out);
		text_puts(out, show_file_name(u->most[i].path), 24);
		fprintf(out, " %u %%", percent(u->most[i].insns, u->total));
	}
	if (u->n_files > n)
		fprintf(out, ", %zu more", u->n_files - n);
}

static void show_files(struct sink *s, struct json_object *report, const struct unnamed *u)
{
	FILE *out;
	size_t n = 0;

	while (n < MIN_OF(u->n_files, (size_t)MAX_FILES) &&
	       percent(u->most[n].insns, u->total) >= LEAST)
		n++;
	if (n == 0 || percent(u->files, u->total) < LEAST)
		return;
	out = begin_line(s, "Unnamed");
	if (out)
		put_files(out, u, n);
	end_line(s);
	out = begin_line(s, "");
	if (out)
		put_packages(out, report, u, s->terminal);
	end_line(s);
}

/* How an interpreter would give names to what it runs, if it is much and has none; or NULL. */
static const char *hint_of(struct json_object *r, const struct unnamed *u)
{
	size_t n = MIN_OF(field_count(r, "images"), (size_t)MAX_IMAGES);

	for (size_t i = 0; i < n && !u->memory_named; i++) {
		struct json_object *image = field_at(r, "images", i);
		const char *name = show_file_name(field_text(image, "path"));
		uint64_t insns = 0;

		if (!name || !field_u64(image, "instructions", &insns) ||
		    percent(insns + u->memory, u->total) < MUCH)
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(interpreters); k++)
			if (strncmp(name, interpreters[k].file, strlen(interpreters[k].file)) == 0)
				return interpreters[k].hint;
	}
	return NULL;
}

static void show_interpreter(struct sink *s, struct json_object *r, const struct unnamed *u)
{
	const char *hint = hint_of(r, u);
	FILE *out = hint ? begin_line(s, "Hint") : NULL;

	if (out)
		fputs(hint, out);
	if (hint)
		end_line(s);
}

/* What a compiler wrote down, with times of another clock. */
static void show_undated(struct sink *s, struct json_object *r)
{
	size_t n = MIN_OF(field_count(r, "images"), (size_t)MAX_IMAGES);

	for (size_t i = 0; i < n; i++) {
		struct json_object *image = field_at(r, "images", i);
		FILE *out;

		if (!field_get(image, "jitdump") || field_true(image, "jitdump.times"))
			continue;
		out = begin_line(s, "Hint");
		if (out) {
			text_puts(out, show_file_name(field_text(image, "path")), 40);
			fputs(" gives names only: its clock is not that of the trace", out);
		}
		end_line(s);
		return;
	}
}

static void show_all(struct sink *s, struct json_object *report)
{
	struct unnamed u = {.total = 0};

	if (field_true(report, "namesLeftOut"))
		return;
	read_images(report, &u);
	show_files(s, report, &u);
	show_interpreter(s, report, &u);
	show_undated(s, report);
}

void show_names(FILE *out, struct json_object *report)
{
	struct sink s = {.out = out, .terminal = isatty(fileno(out))};

	show_all(&s, report);
}

bool page_names(const struct page *p)
{
	/* A page is written to memory first. */
	struct sink s = {.out = p->out, .page = p, .terminal = isatty(STDOUT_FILENO)};

	show_all(&s, p->report);
	return s.any;
}
