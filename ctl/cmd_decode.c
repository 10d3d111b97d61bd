/*
 * ptsnapctl decode: runs ptsnap-decode, without a recorder, on a bundle, or on a perf.data or raw
 * files made into a bundle. ptsnapctl opens the files; the sandboxed worker parses them.
 */
#include "ctl/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/run/worker_run.h"
#include "proto/base.h"
#include "proto/memfd.h"

#include "ctl/base/file.h"
#include "ctl/base/say.h"
#include "ctl/client/stored.h"
#include "ctl/decode/answers.h"
#include "ctl/decode/decode_option.h"
#include "ctl/perfdata/import_perfdata.h"
#include "ctl/show/show.h"

static int open_bundle(const char *path, int *ret_fd)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %m", path);
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		return say_error(EXIT_CODE_FAILURE,
				 "%s: not a regular file; ptsnapctl does not read the directories "
				 "that `perf record --threads' writes",
				 path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return say_error(EXIT_CODE_FAILURE, "%s: not a regular file", path);
	if (st.st_size == 0)
		return say_error(EXIT_CODE_FAILURE, "%s: the file is empty", path);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* The first bytes of the operand say whether it is a perf.data or a bundle. A bundle in the state
 * directory of a recorder is joined with the images beside it. */
static int open_operand(const struct decode_request *q, int *ret_fd)
{
	CLEANUP(stored_freep) struct stored *stored = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	int r = open_bundle(q->bundle, &fd);

	if (r != 0)
		return r;
	if (import_perfdata_is(fd))
		return import_perfdata(fd, q->bundle, q->sysroot, q->settings->quiet, ret_fd);
	if (q->sysroot)
		return say_error(EXIT_CODE_USAGE,
				 "--sysroot goes with a perf.data; a bundle contains its files");
	r = stored_from_file(q->bundle, take_fd(&fd), &stored);
	return r != 0 ? r : stored_open(stored, q->settings->quiet, ret_fd);
}

/* Prints ERROR, of the worker or of the kernel, about the input NAME. */
static int say_worker_error(const char *name, int error)
{
	switch (-error) {
	case EPIPE: return EXIT_CODE_FAILURE; /* the reader has seen enough */
	case EBADMSG:
		return say_error(EXIT_CODE_FAILURE,
				 "%s: not a ptsnap bundle, or a truncated or damaged one", name);
	case EPROTONOSUPPORT:
		return say_error(EXIT_CODE_FAILURE,
				 "%s: made by a newer version of ptsnap; use its "
				 "ptsnapctl",
				 name);
	case EBADF:
		return say_error(EXIT_CODE_FAILURE, "standard output is closed; give -o a file");
	case EFBIG:
		return say_error(EXIT_CODE_FAILURE,
				 "%s: larger than a bundle can be, or the output is larger than a "
				 "file may be (ulimit -f)",
				 name);
	case ENOMEM:
		return say_error(EXIT_CODE_FAILURE,
				 "%s: not enough memory to decode; --memory= sets how much "
				 "the decoder may take",
				 name);
	case ENOSPC:
	case EDQUOT:
		return say_error(EXIT_CODE_FAILURE, "no space left for the output; give -o a file "
						    "on another file system");
	case ENODATA:
		return say_error(EXIT_CODE_USAGE, "%s: its report has no gap with this number",
				 name);
	case E2BIG: return say_error(EXIT_CODE_FAILURE, "%s: the report exceeds its limit", name);
	default:
		return say_error(EXIT_CODE_FAILURE, "%s: decoding failed: %s", name,
				 strerror(-error));
	}
}

static int say_failed(const struct worker_job *job, const char *name,
		      const struct worker_outcome *outcome)
{
	if (outcome->lied)
		return say_error(
			EXIT_CODE_FAILURE,
			"%s: %s sent an invalid message; is it the ptsnap-decode of this version?",
			name, job->program);
	if (outcome->error != 0)
		return say_worker_error(name, outcome->error);
	return say_error(EXIT_CODE_FAILURE,
			 "%s: %s ended without a result (exit status %d); is it the ptsnap-decode "
			 "of this version?",
			 name, job->program, outcome->exit_status);
}

static int judge(const struct decode_request *q, const struct worker_job *job, const char *name,
		 const struct worker_outcome *outcome, int r)
{
	switch (r) {
	case 0: break;
	case WORKER_CRASHED:
		if (outcome->signal == SIGPIPE)
			return EXIT_CODE_FAILURE;
		return say_error(EXIT_CODE_FAILURE,
				 "%s: ptsnap-decode was killed by signal %d (%s); the input is "
				 "untouched; please report this%s",
				 name, outcome->signal, strsignal(outcome->signal),
				 q->options.no_symbols || q->options.view != WORKER_VIEW_REPORT ? ""
				 : q->options.lines || q->options.debug
					 ? "; try without --lines and --symbols, or with --no-names"
					 : "; try --no-names");
	case WORKER_TIMEOUT:
		return say_error(EXIT_CODE_TIMEOUT,
				 "%s: not decoded in time; --timeout= sets how long to wait", name);
	case WORKER_FAILED: return say_failed(job, name, outcome);
	case -ENOENT:
	case -EACCES:
	case -ENOEXEC:
		return say_error(EXIT_CODE_FAILURE,
				 "%s: cannot be run: %s; --worker=PATH or PTSNAP_DECODE names "
				 "ptsnap-decode",
				 job->program, strerror(-r));
	default:
		return say_error(EXIT_CODE_FAILURE, "cannot run %s: %s", job->program,
				 strerror(-r));
	}
	if (outcome->faults > q->max_errors)
		return say_error(EXIT_CODE_TOO_MANY_ERRORS,
				 "%s: %ju errors, --max-errors allows %ju", name,
				 (uintmax_t)outcome->faults, (uintmax_t)q->max_errors);
	return 0;
}

static int run(const struct decode_request *q, int bundle_fd, int output_fd)
{
	const char *name = q->bundle ? q->bundle : q->raw.pt_path;
	CLEANUP(answers_done) struct answers answers;
	CLEANUP_FREE char *program = NULL;
	struct worker_outcome outcome;
	struct worker_job job = {
		.bundle_fd = bundle_fd,
		.output_fd = output_fd,
		.request = {.options = q->options},
		.timeout_usec =
			q->settings->timeout_usec == UINT64_MAX ? 0 : q->settings->timeout_usec,
		.cancel_fd = -1,
	};
	int r = answers_init(&answers, q, bundle_fd);

	if (r != 0)
		return r;
	r = worker_find(q->worker, &program);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	job.program = program;
	answers_use(&answers, &job);
	r = worker_run(&job, &outcome);
	say_worker(&outcome.said);
	if (r == 0 && !q->settings->quiet)
		answers_remark(&answers, name);
	return judge(q, &job, name, &outcome, r);
}

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
	r = run(q, bundle_fd, as_text ? report_fd : o.fd);
	/* With too many errors, the output is still of use. */
	if (r != 0 && r != EXIT_CODE_TOO_MANY_ERRORS)
		return r;
	if (as_text) {
		delivered = deliver_report(q->settings, report_fd, NULL, true);
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
	r = q.bundle ? open_operand(&q, &fd) : raw_compose(&q.raw, &fd, &cut);
	if (cut > 0 && !s->quiet)
		say("%zu ranges of --raw-image end beyond their file and were cut there", cut);
	return r != 0 ? r : decode(&q, fd);
}
