/*
 * ptsnapctl fetch: copies a stored report, or a stored bundle together with its images.
 */
#include "ctl/verb.h"

#include <fcntl.h>
#include <string.h>

#include "proto/base.h"

#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/client/client.h"
#include "ctl/show/deliver.h"

static const char *const FORMATS[] = {"report", "bundle", NULL};
enum { FORMAT_REPORT, FORMAT_BUNDLE };
/* The recorder may have to make the report first (io.ptsnap.recorder(7), REPORTS FOR ONE USER), and
 * the reports of other callers before that. */
#define REMAKE_TIMEOUT_USEC 600000000ull

struct request {
	struct settings *settings;
	const char *id, *output;
	int format;
};

static int parse(struct request *q, int argc, char **argv)
{
	static const struct option own[] = {
		{"format", required_argument, NULL, OPTION_OWN},
		{"output", required_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = option_next(q->settings, argc, argv, own, "o:", true)) != OPTION_END) {
		if (option == OPTION_USAGE)
			return EXIT_CODE_USAGE;
		if (option == 'o')
			q->output = optarg;
		else
			q->format = option_choice("--format", optarg, FORMATS);
		if (q->format < 0)
			return EXIT_CODE_USAGE;
	}
	if (q->settings->help || q->settings->version)
		return 0;
	if (argc - optind != 1)
		return say_error(EXIT_CODE_USAGE, "fetch takes one operand: an ID of `ptsnapctl "
						  "list', or latest");
	q->id = argv[optind];
	return 0;
}

static int fetch_report(const struct request *q)
{
	CLEANUP(client_freep) struct client *c = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	int r = client_open(q->settings, REMAKE_TIMEOUT_USEC, &c);

	if (r == 0)
		r = client_get(c, q->id, FORMATS[q->format], &fd);
	return r != 0 ? r : deliver_report(q->settings, fd, q->output, false);
}

/* A name with a slash is a file in a state directory; no recorder has to run for it. */
static int open_stored(const struct request *q, struct stored **ret)
{
	int fd, r;

	if (!strchr(q->id, '/'))
		return stored_from_recorder(q->settings, q->id, ret);
	if (output_replaces(q->output, q->id))
		return say_error(EXIT_CODE_USAGE,
				 "-o %s: this is the bundle to fetch; give another name",
				 q->output);
	fd = open(q->id, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %m", q->id);
	r = stored_from_file(q->id, fd, ret);
	return r != 0 ? r : stored_check(*ret);
}

static int fetch_bundle(const struct request *q)
{
	CLEANUP(stored_freep) struct stored *stored = NULL;
	int r = open_stored(q, &stored);

	return r != 0 ? r : deliver_bundle(q->settings, stored, q->output);
}

int cmd_fetch(struct settings *s, int argc, char **argv)
{
	struct request q = {.settings = s, .format = FORMAT_REPORT};
	int r = parse(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	if (q.format == FORMAT_BUNDLE && !q.output && isatty(STDOUT_FILENO))
		return say_error(EXIT_CODE_USAGE, "a bundle is binary and not written to a "
						  "terminal; use -o FILE");
	return q.format == FORMAT_BUNDLE ? fetch_bundle(&q) : fetch_report(&q);
}
