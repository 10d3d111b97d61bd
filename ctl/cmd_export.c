/*
 * ptsnapctl export: writes a bundle, from a file or from the recorder, in the format of another
 * tool.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"

#include "ctl/base/file.h"
#include "ctl/base/progress.h"
#include "ctl/base/say.h"
#include "ctl/calls/calls.h"
#include "ctl/calls/slice.h"
#include "ctl/client/stored.h"
#include "ctl/export/export.h"
#include "ctl/listing/listing.h"
#include "ctl/perfdata/export_perfdata.h"
#include "ctl/perfdata/import_perfdata.h"

/* Formats besides those of export_formats. */
enum { PERF_DATA, BRSTACK, CALLS };

struct request {
	struct settings *settings;
	const char *operand, *output, *images;
	int kind;
	const struct export_format *format; /* of CALLS */
	enum export_weight weight;
	bool weighed, decodes; /* --weight, or an option about decoding, was given */
	struct calls_source source;
	struct slice slice;
};

/* --- The command line --- */

static int take_format(struct request *q, const char *name)
{
	const char *names[16] = {"perf.data", "brstack"};
	int i = 2;

	for (const struct export_format *f = export_formats; f->name; f++)
		names[i++] = f->name;
	i = option_choice("--format", name, names);
	q->kind = MIN_OF(i, CALLS);
	q->format = i >= CALLS ? &export_formats[i - CALLS] : NULL;
	return i < 0 ? EXIT_CODE_USAGE : 0;
}

/* The name of the output says what is meant. */
static void guess_format(struct request *q)
{
	size_t size = q->output ? strlen(q->output) : 0;

	for (const struct export_format *f = export_formats; f->name && q->kind < 0; f++) {
		size_t end = strlen(f->suffix);

		if (size > end && strcmp(q->output + size - end, f->suffix) == 0) {
			q->kind = CALLS;
			q->format = f;
		}
	}
	q->kind = MAX_OF(q->kind, PERF_DATA);
}

static int take_weight(struct request *q, const char *name)
{
	static const char *const weights[] = {"cpu", "wall", "instructions", NULL};
	int i = option_choice("--weight", name, weights);

	q->weight = (enum export_weight)MAX_OF(i, 0);
	q->weighed = true;
	return i < 0 ? EXIT_CODE_USAGE : 0;
}

enum {
	OPTION_FORMAT = OPTION_OWN,
	OPTION_IMAGES,
	OPTION_WEIGHT,
	OPTION_SOURCE,				       /* the first of SOURCE_OPTIONS */
	OPTION_SLICE = OPTION_SOURCE + SOURCE_OPTIONS, /* the first of SLICE_OPTIONS */
};

static const struct option OPTIONS[] = {
	{"format", required_argument, NULL, OPTION_FORMAT},
	{"images", required_argument, NULL, OPTION_IMAGES},
	{"weight", required_argument, NULL, OPTION_WEIGHT},
	{"output", required_argument, NULL, 'o'},
};

static int take(struct request *q, int option)
{
	switch (option) {
	case 'o': q->output = optarg; return 0;
	case OPTION_IMAGES: q->images = optarg; return 0;
	case OPTION_FORMAT: return take_format(q, optarg);
	case OPTION_WEIGHT: return take_weight(q, optarg);
	}
	if (option >= OPTION_SLICE)
		return slice_option_take(&q->slice, (size_t)(option - OPTION_SLICE), optarg);
	q->decodes = true;
	return source_option_take(&q->source, (size_t)(option - OPTION_SOURCE), optarg);
}

static int check(const struct request *q)
{
	if (q->images && *q->images == '\0')
		return say_error(EXIT_CODE_USAGE, "--images= needs a directory's name");
	if (q->images && q->kind != PERF_DATA)
		return say_error(EXIT_CODE_USAGE, "--images goes with --format=perf.data");
	if (q->decodes && q->kind == PERF_DATA)
		return say_error(EXIT_CODE_USAGE, "--format=perf.data decodes nothing; leave out "
						  "--worker, --sysroot, --symbols, --debuginfod, "
						  "--lines and --no-names");
	if (q->source.lines && q->kind != PERF_DATA && q->kind != CALLS)
		return say_error(EXIT_CODE_USAGE,
				 "--lines goes with the formats that are made of calls");
	if (slice_is_given(&q->slice) && q->kind == PERF_DATA)
		return say_error(
			EXIT_CODE_USAGE,
			"perf.data is the whole recording: --from, --to, --cpu, --pid, --tid, "
			"--comm, --function and --image go with the other formats, and perf has "
			"--time, --cpu, --pid, --tid and --comm");
	if (q->weighed && (!q->format || strcmp(q->format->name, "collapsed") != 0))
		return say_error(EXIT_CODE_USAGE, "--weight goes with --format=collapsed");
	return 0;
}

static int parse(struct request *q, int argc, char **argv)
{
	struct option own[ARRAY_SIZE(OPTIONS) + SOURCE_OPTIONS + SLICE_OPTIONS + 1] = {{0}};
	int option, r;

	memcpy(own, OPTIONS, sizeof(OPTIONS));
	source_option_table(own + ARRAY_SIZE(OPTIONS), OPTION_SOURCE);
	slice_option_table(own + ARRAY_SIZE(OPTIONS) + SOURCE_OPTIONS, OPTION_SLICE);
	while ((option = option_next(q->settings, argc, argv, own, "o:", true)) != OPTION_END) {
		r = option == OPTION_USAGE ? EXIT_CODE_USAGE : take(q, option);
		if (r != 0)
			return r;
	}
	if (q->settings->help || q->settings->version)
		return 0;
	q->operand = q->source.operand =
		option_operand(argc, argv, "an ID of `ptsnapctl list', latest, or a bundle's file");
	if (!q->operand)
		return EXIT_CODE_USAGE;
	guess_format(q);
	return check(q);
}

/* --- perf.data --- */

static int open_file(const struct request *q, struct stored **ret)
{
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat st;

	fd = open(q->operand, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %m", q->operand);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return say_error(EXIT_CODE_FAILURE, "%s: not a regular file", q->operand);
	if (import_perfdata_is(fd))
		return say_error(EXIT_CODE_FAILURE, "%s: is a perf.data already", q->operand);
	return stored_from_file(q->operand, take_fd(&fd), ret);
}

static int write_images(const struct request *q, const struct bundle *b)
{
	struct images_told told;
	int r = images_write(b, q->images, &told);

	if (r == -ENOTEMPTY)
		return say_error(EXIT_CODE_FAILURE, "--images: %s is not empty", q->images);
	if (r == IMAGES_NOT_OURS)
		return say_error(EXIT_CODE_FAILURE,
				 "--images: %s belongs to another user; name a new directory",
				 q->images);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "--images: %s: %s", q->images, strerror(-r));
	if (q->settings->quiet)
		return 0;
	if (told.good < told.n)
		say("%zu of %zu images are not in %s, the first is %s: another image has this "
		    "name, or no file can have it",
		    told.n - told.good, told.n, q->images, told.first_other);
	say("%zu images are in %s, for perf's option --symfs", told.good, q->images);
	return 0;
}

/* The format's name if it is not for a terminal, or NULL. */
static const char *binary_name(const struct request *q)
{
	if (q->kind == PERF_DATA)
		return "perf.data";
	return q->format && q->format->binary ? q->format->name : NULL;
}

static int say_binary(const struct request *q)
{
	return say_error(EXIT_CODE_USAGE, "%s is binary and not written to a terminal; use -o FILE",
			 binary_name(q));
}

static int write_failed(const struct request *q, int r)
{
	if (r == -EPIPE) /* the reader has seen enough */
		return EXIT_CODE_FAILURE;
	return say_error(EXIT_CODE_FAILURE, "%s: %s",
			 q->output && strcmp(q->output, "-") != 0 ? q->output : "standard output",
			 strerror(-r));
}

static int write_output(const struct request *q, const struct bundle *b, struct output *o)
{
	struct export_told told;
	int r = export_perfdata(b, o->fd, &told);

	if (r == -ENODATA)
		return say_error(EXIT_CODE_FAILURE, "%s has no trace", q->operand);
	if (r == 0)
		r = output_commit(o);
	if (r < 0)
		return write_failed(q, r);
	if (told.nobodys && !q->settings->quiet)
		say("the traces have no TSC packets, or the bundle has no clock for them: perf "
		    "cannot tell which process executed what, nor when; leave `time' out of the "
		    "fields (-F) of perf script");
	if (told.untraced && !q->settings->quiet)
		say("no CPU was traced: the file has no Intel PT event, only which threads ran and "
		    "what they mapped; see perf script --show-task-events --show-mmap-events "
		    "--show-switch-events");
	if (told.skipped > 0 && !q->settings->quiet)
		say("%ju sideband records are left out: damaged, or of a kind that perf does not "
		    "know",
		    (uintmax_t)told.skipped);
	return 0;
}

/* Opens the output first: if the output cannot be opened, no directory of images is in the way of
 * the next attempt. */
static int export(const struct request *q, const struct bundle *b)
{
	CLEANUP(output_done) struct output o;
	struct images_told told;
	int r;

	output_init(&o);
	r = output_open(&o, q->output);
	if (r < 0)
		return write_failed(q, r);
	if (output_is_terminal(&o))
		return say_binary(q);
	r = q->images ? write_images(q, b) : 0;
	if (r != 0)
		return r;
	if (!q->images && !q->settings->quiet) {
		/* perf does not notice that a mapped file changed, and decodes nonsense. */
		images_compare(b, &told);
		if (told.good < told.n)
			say("%zu of %zu mapped files are gone or not the same on this host, %s is "
			    "the first; export with --images=DIR and give perf --symfs DIR",
			    told.n - told.good, told.n, told.first_other);
	}
	return write_output(q, b, &o);
}

static int export_perf_data(const struct request *q)
{
	CLEANUP(stored_freep) struct stored *stored = NULL;
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	int r;

	/* An operand with a slash, or that exists as a file, is a file; any other operand is an ID.
	 */
	if (strchr(q->operand, '/') || access(q->operand, F_OK) == 0)
		r = open_file(q, &stored);
	else
		r = stored_from_recorder(q->settings, q->operand, &stored);
	if (r == 0)
		r = stored_open(stored, q->settings->quiet, &fd);
	if (r == 0)
		r = bundle_open(fd, &b);
	if (r == -EBADMSG)
		return say_error(EXIT_CODE_FAILURE, "%s: not a bundle, or a damaged one",
				 q->operand);
	if (r == -EPROTONOSUPPORT)
		return say_error(EXIT_CODE_FAILURE, "%s: made by a newer version of ptsnap",
				 q->operand);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %s", q->operand, strerror(-r));
	return r > 0 ? r : export(q, b);
}

/* --- Formats that need a decode --- */

/* R is an exit code after a message, or -errno. */
static int stream_failed(const struct request *q, int r)
{
	if (r > 0)
		return r;
	if (r == -EINVAL)
		return say_error(EXIT_CODE_USAGE, "%s: nothing lies between --from and --to",
				 q->operand);
	if (r == -E2BIG)
		return say_error(EXIT_CODE_FAILURE,
				 "%s: more names, threads or open calls than an export can hold",
				 q->operand);
	if (r == -EBADMSG || r == -ENODATA)
		return say_error(EXIT_CODE_FAILURE,
				 "%s: ptsnap-decode wrote something invalid; is it the "
				 "ptsnap-decode of this version?",
				 q->operand);
	return write_failed(q, r);
}

static int export_calls(const struct request *q, int fd)
{
	struct calls_source source = q->source;
	CLEANUP(exporter_freep) struct exporter *e = NULL;
	CLEANUP(slicer_freep) struct slicer *s = NULL;
	struct exporter_told told;
	int r = exporter_new(q->format, q->weight, fd, &e);

	source.span = slice_decode_until(&q->slice);
	if (isatty(fd))
		progress_never();
	if (r == 0 && slice_is_given(&q->slice))
		r = slicer_new(&q->slice, exporter_take, e, &s);
	if (r == 0)
		r = s ? calls_read(&source, slicer_take, s) : calls_read(&source, exporter_take, e);
	if (r == 0)
		r = exporter_finish(e, &told);
	if (r != 0)
		return stream_failed(q, r);
	if (q->settings->quiet)
		return 0;
	if (told.calls == 0)
		say("%s has no calls", q->operand);
	if (told.cut > 0)
		say("%ju calls are left out, because there are too many in one another",
		    (uintmax_t)told.cut);
	if (told.folded > 0)
		say("%ju calls are counted as part of their callers, because their stacks are too "
		    "deep or there are too many different ones",
		    (uintmax_t)told.folded);
	return 0;
}

static int write_maps(void *userdata, int bundle_fd)
{
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	int r = bundle_open(bundle_fd, &b);

	/* The decoder finds the same, and reports it. */
	return r == 0 ? brstack_maps(userdata, b) : 0;
}

static int take_branches(void *userdata, char *line)
{
	return brstack_take(userdata, line);
}

/* The branches of a slice. */
struct sliced {
	struct listing *listing; /* owned */
	struct brstack *to;
	uint64_t number; /* of the last branch */
	uint32_t cpu, tid;
};

static void sliced_done(struct sliced *s)
{
	listing_freep(&s->listing);
}

static int write_sliced_maps(void *userdata, int bundle_fd)
{
	return write_maps(((struct sliced *)userdata)->to, bundle_fd);
}

static int take_sliced(void *userdata, char *line)
{
	return listing_take(((struct sliced *)userdata)->listing, line);
}

/* The code that the slice leaves out ran between its neighbours: they are in different stacks. */
static int take_branch(void *userdata, const struct listing_line *line)
{
	struct sliced *s = userdata;
	bool follows = line->number == s->number + 1 && line->origin->cpu == s->cpu &&
		       line->origin->tid == s->tid;
	int r = follows ? 0 : brstack_break(s->to);

	if (r < 0 || line->kind == EXECSTREAM_GAP)
		return r;
	s->number = line->number;
	s->cpu = line->origin->cpu;
	s->tid = line->origin->tid;
	return brstack_branch(s->to, line->from ? line->from->address : 0,
			      line->to ? line->to->address : 0);
}

static int read_sliced(const struct request *q, struct brstack *b)
{
	CLEANUP(sliced_done) struct sliced s = {.to = b};
	struct calls_source source = q->source;
	int r = listing_new(&q->slice, 0, take_branch, &s, &s.listing);

	source.show = WORKER_SHOW_STREAM;
	source.opened = write_sliced_maps;
	if (r == 0)
		r = calls_read_lines(&source, WORKER_VIEW_BRANCHES, take_sliced, &s);
	return r == 0 ? listing_finish(s.listing, false) : r;
}

static int read_all(const struct request *q, struct brstack *b)
{
	struct calls_source source = q->source;

	source.opened = write_maps;
	return calls_read_lines(&source, WORKER_VIEW_BRANCHES, take_branches, b);
}

static int export_branches(const struct request *q, int fd)
{
	CLEANUP(brstack_freep) struct brstack *b = NULL;
	uint64_t n;
	int r = brstack_new(fd, &b);

	if (r == 0)
		r = slice_is_given(&q->slice) ? read_sliced(q, b) : read_all(q, b);
	if (r == 0)
		r = brstack_finish(b, &n);
	if (r != 0)
		return stream_failed(q, r);
	if (n == 0 && !q->settings->quiet)
		say("%s has no branches", q->operand);
	return 0;
}

static int export_decoded(const struct request *q)
{
	CLEANUP(output_done) struct output o;
	int r;

	output_init(&o);
	r = output_open(&o, q->output);
	if (r < 0)
		return write_failed(q, r);
	if (binary_name(q) && output_is_terminal(&o))
		return say_binary(q);
	r = q->kind == BRSTACK ? export_branches(q, o.fd) : export_calls(q, o.fd);
	if (r != 0)
		return r;
	r = output_commit(&o);
	return r < 0 ? write_failed(q, r) : 0;
}

int cmd_export(struct settings *s, int argc, char **argv)
{
	struct request q = {.settings = s, .kind = -1, .source = {.settings = s}};
	int r = parse(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	if (!q.output && binary_name(&q) && isatty(STDOUT_FILENO))
		return say_binary(&q);
	if (output_replaces(q.output, q.operand))
		return say_error(EXIT_CODE_USAGE,
				 "-o %s: this is the bundle to export; give another name",
				 q.output);
	return q.kind == PERF_DATA ? export_perf_data(&q) : export_decoded(&q);
}
