/*
 * ptsnapctl info: one page about a stored snapshot, a saved report, a bundle or a perf.data.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "proto/base.h"

#include "ctl/base/say.h"
#include "ctl/baseline.h"
#include "ctl/client/client.h"
#include "ctl/show/show.h"

/* The recorder may have to make the report first (io.ptsnap.recorder(7), REPORTS FOR ONE USER). */
#define REMAKE_TIMEOUT_USEC 600000000ull

struct request {
	struct settings *settings;
	const char *operand, *baseline; /* baseline: NULL: none */
	bool no_pager;
};

static int parse(struct request *q, int argc, char **argv)
{
	enum { OPTION_NO_PAGER = OPTION_OWN, OPTION_BASELINE };
	static const struct option own[] = {
		{"baseline", required_argument, NULL, OPTION_BASELINE},
		{"no-pager", no_argument, NULL, OPTION_NO_PAGER},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = option_next(q->settings, argc, argv, own, "", true)) != OPTION_END) {
		if (option == OPTION_USAGE)
			return EXIT_CODE_USAGE;
		if (option == OPTION_BASELINE)
			q->baseline = optarg;
		else
			q->no_pager = true;
	}
	if (argc - optind > 1)
		return say_error(EXIT_CODE_USAGE, "info takes one operand: an ID of `ptsnapctl "
						  "list', latest, or a file");
	q->operand = optind < argc ? argv[optind] : "latest";
	return 0;
}

/* Whether FD is a report: its first byte that is not white space begins a JSON object, which
 * neither a bundle nor a perf.data begins with. */
static bool is_report(int fd)
{
	char head[64];
	ssize_t n = pread(fd, head, sizeof(head), 0);

	for (ssize_t i = 0; i < n; i++)
		if (!strchr(" \t\r\n", head[i]))
			return head[i] == '{';
	return false;
}

static int open_file(struct settings *s, const char *path, int *ret_fd)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %m", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !is_report(fd))
		return report_of_file(s, path, ret_fd);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int open_stored(struct settings *s, const char *id, int *ret_fd)
{
	CLEANUP(client_freep) struct client *c = NULL;
	int r = client_open(s, REMAKE_TIMEOUT_USEC, &c);

	return r != 0 ? r : client_get(c, id, "report", ret_fd);
}

int report_of_operand(struct settings *s, const char *operand, int *ret_fd)
{
	/* An operand with a slash, or that exists as a file, is a file; any other is an ID. */
	if (strchr(operand, '/') || access(operand, F_OK) == 0)
		return open_file(s, operand, ret_fd);
	return open_stored(s, operand, ret_fd);
}

int cmd_info(struct settings *s, int argc, char **argv)
{
	struct request q = {.settings = s};
	CLEANUP_CLOSE int fd = -EBADF;
	int r = parse(&q, argc, argv);

	if (r != 0 || s->help || s->version)
		return r;
	r = report_of_operand(s, q.operand, &fd);
	if (r != 0)
		return r;
	return q.baseline ? baseline_deliver(s, fd, q.baseline, false, !q.no_pager)
			  : deliver_info(s, fd, !q.no_pager);
}
