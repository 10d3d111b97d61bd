/*
 * ptsnapctl fetch: a stored report or bundle, copied out of the fd that the recorder hands over.
 */
#include "ctl/verb.h"

#include "proto/base.h"

#include "ctl/client.h"
#include "ctl/deliver.h"
#include "ctl/exit_code.h"
#include "ctl/say.h"

static const char *const FORMATS[] = {"report", "bundle", NULL};
enum { FORMAT_REPORT, FORMAT_BUNDLE };

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

int cmd_fetch(struct settings *s, int argc, char **argv)
{
	struct request q = {.settings = s, .format = FORMAT_REPORT};
	CLEANUP(client_freep) struct client *c = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	int r = parse(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	if (q.format == FORMAT_BUNDLE && !q.output && isatty(STDOUT_FILENO))
		return say_error(EXIT_CODE_USAGE, "a bundle is binary and not written to a "
						  "terminal; use -o FILE");
	r = client_open(s, CLIENT_TIMEOUT_USEC, &c);
	if (r == 0)
		r = client_get(c, q.id, FORMATS[q.format], &fd);
	if (r != 0)
		return r;
	if (q.format == FORMAT_BUNDLE)
		return deliver_bundle(fd, q.output);
	return deliver_report(s, fd, q.output, false);
}
