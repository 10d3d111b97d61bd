/*
 * ptsnapctl decode: runs ptsnap-decode on a bundle, or on a perf.data or raw files made into a
 * bundle; without a recorder, unless the bundle is one that it stored. ptsnapctl opens the files;
 * the sandboxed worker parses them.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <string.h>

#include "proto/base.h"
#include "proto/memfd.h"

#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/decode/decode_option.h"
#include "ctl/decode/decode_run.h"
#include "ctl/show/show.h"

/* Decodes into the output, or into memory for a report that is printed as text. */
static int decode(const struct decode_request *q, int bundle_fd)
{
	CLEANUP(output_done) struct output o;
	CLEANUP_CLOSE int report_fd = -EBADF;
	enum json_mode json = q->settings->json;
	bool as_text = q->options.view == WORKER_VIEW_REPORT && !q->output &&
		       (json == JSON_OFF || (json == JSON_UNSET && isatty(STDOUT_FILENO)));
	int r, delivered;

	output_init(&o);
	if (as_text && memfd_new("ptsnap-report", 0, &report_fd) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a memory file: %m");
	r = as_text ? 0 : output_open(&o, q->output);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %s", q->output, strerror(-r));
	r = decode_run_worker(q, bundle_fd, as_text ? report_fd : o.fd, -1);
	/* With too many errors, the output is still of use. */
	if (r != 0 && r != EXIT_CODE_TOO_MANY_ERRORS)
		return r;
	if (as_text) {
		delivered = deliver_report(q->settings, report_fd,
					   &(struct show_delivery){NULL, true, q->no_pager});
		return delivered != 0 ? delivered : r;
	}
	delivered = output_commit(&o);
	if (delivered < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %s", q->output, strerror(-delivered));
	return r;
}

/* Refuses an output that would replace an input. */
static bool spares_inputs(const struct decode_request *q)
{
	const struct raw *raw = &q->raw;
	bool replaces =
		output_replaces(q->output, q->bundle) || output_replaces(q->output, raw->pt_path);

	for (size_t i = 0; i < raw->n_images; i++)
		replaces |= output_replaces(q->output, raw->images[i].path);
	for (size_t i = 0; i < raw->pevents.n_files; i++)
		replaces |= output_replaces(q->output, raw->pevents.files[i].path);
	if (replaces)
		say("-o %s: this is the input to decode; give another name", q->output);
	return !replaces;
}

int cmd_decode(struct settings *s, int argc, char **argv)
{
	CLEANUP(decode_request_done) struct decode_request q;
	CLEANUP_CLOSE int fd = -EBADF;
	size_t cut = 0;
	int r;

	decode_request_init(&q, s);
	r = decode_request_parse(&q, argc, argv);
	if (r != 0 || s->help || s->version)
		return r;
	if (!spares_inputs(&q))
		return EXIT_CODE_USAGE;
	r = q.bundle ? decode_open(&q, &fd) : raw_compose(&q.raw, &fd, &cut);
	if (cut > 0 && !s->quiet)
		say("%zu ranges of --raw-image end beyond their file and were cut there", cut);
	return r != 0 ? r : decode(&q, fd);
}
