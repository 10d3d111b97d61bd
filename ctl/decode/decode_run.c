/*
 * Opens what is to be decoded, runs ptsnap-decode on it, and says what went wrong.
 */
#include "ctl/decode/decode_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/run/worker_run.h"
#include "proto/base.h"

#include "ctl/base/file.h"
#include "ctl/base/progress.h"
#include "ctl/base/say.h"
#include "ctl/client/stored.h"
#include "ctl/decode/answers.h"
#include "ctl/perfdata/import_perfdata.h"

/* Whether FD begins as JSON, which neither a bundle nor a perf.data does. */
static bool is_json(int fd)
{
	char first;

	return pread(fd, &first, 1, 0) == 1 && first == '{';
}

/* The directory that perf record --kcore makes of its file has the file as DIR/data, and that of
 * perf record --threads also has a file for each thread (tools/perf/util/data.c,
 * perf_data__create_dir()). *ret is PATH or, to be freed, the file in the directory PATH. 0, or an
 * exit code after a message. */
static int find_file(const char *path, char **ret)
{
	CLEANUP_FREE char *data = NULL, *thread = NULL;
	struct stat st;

	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode)) {
		*ret = strdup(path);
		return *ret ? 0 : say_error(EXIT_CODE_FAILURE, "out of memory");
	}
	if (asprintf(&data, "%s/data", path) < 0)
		data = NULL;
	if (asprintf(&thread, "%s/data.0", path) < 0)
		thread = NULL;
	if (!data || !thread)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	if (access(thread, F_OK) == 0)
		return say_error(EXIT_CODE_FAILURE,
				 "%s: not a regular file; ptsnapctl does not read the directories "
				 "that `perf record --threads' writes",
				 path);
	if (access(data, F_OK) < 0)
		return say_error(
			EXIT_CODE_FAILURE,
			"%s: not a regular file, and no directory of `perf record --kcore'", path);
	*ret = TAKE_PTR(data);
	return 0;
}

static int open_bundle(const char *path, int *ret_fd)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return say_error(EXIT_CODE_FAILURE, "%s: %m", path);
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return say_error(EXIT_CODE_FAILURE, "%s: not a regular file", path);
	if (st.st_size == 0)
		return say_error(EXIT_CODE_FAILURE, "%s: the file is empty", path);
	if (is_json(fd))
		return say_error(EXIT_CODE_FAILURE,
				 "%s: a saved report has no trace to decode; give the ID of its "
				 "snapshot, or its bundle",
				 path);
	*ret_fd = take_fd(&fd);
	return 0;
}

static int open_file(const struct decode_request *q, int *ret_fd)
{
	CLEANUP(stored_freep) struct stored *stored = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	CLEANUP_FREE char *path = NULL;
	int r = find_file(q->bundle, &path);

	if (r == 0)
		r = open_bundle(path, &fd);
	if (r != 0)
		return r;
	if (import_perfdata_is(fd))
		return import_perfdata(fd, path, q->sysroot, q->settings->quiet, ret_fd);
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
	case ERANGE:
		return say_error(EXIT_CODE_USAGE, "%s: nothing lies between --from and --to", name);
	case ENOTSUP:
		return say_error(EXIT_CODE_FAILURE,
				 "%s: the trace has no times, which --from and --to need", name);
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
	case -ECANCELED: return EXIT_CODE_FAILURE; /* by the caller, who knows why */
	case WORKER_CRASHED:
		if (outcome->signal == SIGPIPE)
			return EXIT_CODE_FAILURE;
		return say_error(EXIT_CODE_FAILURE,
				 "%s: ptsnap-decode was killed by signal %d (%s); the input is "
				 "untouched; please report this%s",
				 name, outcome->signal, strsignal(outcome->signal),
				 q->options.no_symbols || !decode_has_names(&q->options) ? ""
				 : q->options.lines
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

static void on_progress(void *userdata, unsigned phase, unsigned percent)
{
	(void)userdata;
	/* The other phases have no percent, and are short. */
	if (phase == WORKER_PHASE_DECODE)
		progress_tell(percent);
}

int decode_run_worker(const struct decode_request *q, int bundle_fd, int output_fd, int cancel_fd)
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
		.cancel_fd = cancel_fd,
		.progress = on_progress,
	};
	int r = answers_init(&answers, q, bundle_fd);

	if (r != 0)
		return r;
	r = worker_find(q->worker, &program);
	if (r < 0)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	job.program = program;
	answers_use(&answers, &job);
	/* A terminal that shows what the worker writes has no room for more. */
	if (!q->settings->quiet && !isatty(output_fd))
		progress_begin(name, PROGRESS_PATIENCE_NSEC);
	r = worker_run(&job, &outcome);
	progress_end();
	say_worker(&outcome.said);
	if (r == 0 && !q->settings->quiet)
		answers_remark(&answers, name);
	return judge(q, &job, name, &outcome, r);
}

int decode_open(const struct decode_request *q, int *ret_fd)
{
	CLEANUP(stored_freep) struct stored *stored = NULL;
	int r;

	/* No ID has a dot. */
	if (strpbrk(q->bundle, "/.") || access(q->bundle, F_OK) == 0)
		return open_file(q, ret_fd);
	if (q->sysroot)
		return say_error(
			EXIT_CODE_USAGE,
			"--sysroot goes with a perf.data; a stored snapshot has its files");
	r = stored_from_recorder(q->settings, q->bundle, &stored);
	return r != 0 ? r : stored_open(stored, q->settings->quiet, ret_fd);
}
