/*
 * ptsnapctl export: writes a bundle, from a file or from the recorder, in the format of another
 * tool.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"

#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/client/stored.h"
#include "ctl/perfdata/export_perfdata.h"
#include "ctl/perfdata/import_perfdata.h"

static const char *const FORMATS[] = {"perf.data", NULL};

struct request {
	struct settings *settings;
	const char *operand, *output, *images;
	int format;
};

static int parse(struct request *q, int argc, char **argv)
{
	enum { OPTION_FORMAT = OPTION_OWN, OPTION_IMAGES };
	static const struct option own[] = {
		{"format", required_argument, NULL, OPTION_FORMAT},
		{"images", required_argument, NULL, OPTION_IMAGES},
		{"output", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = option_next(q->settings, argc, argv, own, "o:", true)) != OPTION_END) {
		switch (option) {
		case 'o': q->output = optarg; break;
		case OPTION_IMAGES: q->images = optarg; break;
		case OPTION_FORMAT:
			q->format = option_choice("--format", optarg, FORMATS);
			if (q->format < 0)
				return EXIT_CODE_USAGE;
			break;
		default: return EXIT_CODE_USAGE;
		}
	}
	if (q->settings->help || q->settings->version)
		return 0;
	if (argc - optind != 1)
		return say_error(EXIT_CODE_USAGE, "export takes one operand: an ID of `ptsnapctl "
						  "list', latest, or a bundle's file");
	if (q->images && *q->images == '\0')
		return say_error(EXIT_CODE_USAGE, "--images= needs a directory's name");
	q->operand = argv[optind];
	return 0;
}

static int open_file(const struct request *q, struct stored **ret)
{
	CLEANUP_CLOSE int fd = -EBADF;
	struct stat st;

	if (output_replaces(q->output, q->operand))
		return say_error(EXIT_CODE_USAGE,
				 "-o %s: this is the bundle to export; give another name",
				 q->output);
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
		return say_error(EXIT_CODE_USAGE, "perf.data is binary and not written to a "
						  "terminal; use -o FILE");
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

int cmd_export(struct settings *s, int argc, char **argv)
{
	struct request q = {.settings = s};
	CLEANUP(stored_freep) struct stored *stored = NULL;
	CLEANUP(bundle_freep) struct bundle *b = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	int r = parse(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	if (!q.output && isatty(STDOUT_FILENO))
		return say_error(EXIT_CODE_USAGE, "perf.data is binary and not written to a "
						  "terminal; use -o FILE");
	/* An operand with a slash, or that exists as a file, is a file; any other operand is an ID.
	 */
	if (strchr(q.operand, '/') || access(q.operand, F_OK) == 0)
		r = open_file(&q, &stored);
	else
		r = stored_from_recorder(s, q.operand, &stored);
	if (r == 0)
		r = stored_open(stored, s->quiet, &fd);
	if (r == 0)
		r = bundle_open(fd, &b);
	if (r == -EBADMSG)
		return say_error(EXIT_CODE_FAILURE, "%s: not a bundle, or a damaged one",
				 q.operand);
	if (r == -EPROTONOSUPPORT)
		return say_error(EXIT_CODE_FAILURE, "%s: made by a newer version of ptsnap",
				 q.operand);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %s", q.operand, strerror(-r));
	return r > 0 ? r : export(&q, b);
}
