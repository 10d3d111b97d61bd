/*
 * run_worker [KEY=VALUE...] PROGRAM VIEW BUNDLE OUTPUT [LIMIT [HASH [DEADLINE]]]: runs
 * ptsnap-decode as the daemon does, for shell tests. HASH is 0 or 1, DEADLINE is in ns. KEY is
 * socket (of a decode service), threads, no-symbols, lines, lines-ns, timeout (us) or memory.
 * Prints how the decoder ended: "condition C signal S exit E error R faults F". Exits with the
 * condition of worker_run, or 9 on any other failure.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/run/worker_run.h"
#include "proto/base.h"

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 10);
}

/* False: ARG is not one of these keys. */
static bool set(struct worker_job *job, const char *arg)
{
	const char *value = strchr(arg, '=');

	if (!value)
		return false;
	value++;
	if (strncmp(arg, "socket=", 7) == 0)
		job->socket = value;
	else if (strncmp(arg, "threads=", 8) == 0)
		job->request.options.threads = (uint32_t)number(value);
	else if (strncmp(arg, "no-symbols=", 11) == 0)
		job->request.options.no_symbols = (uint32_t)number(value);
	else if (strncmp(arg, "lines=", 6) == 0)
		job->request.options.lines = (uint32_t)number(value);
	else if (strncmp(arg, "lines-ns=", 9) == 0)
		job->request.options.lines_ns = number(value);
	else if (strncmp(arg, "timeout=", 8) == 0)
		job->timeout_usec = number(value);
	else if (strncmp(arg, "memory=", 7) == 0)
		job->request.options.memory_limit = number(value);
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	CLEANUP_CLOSE int bundle = -EBADF, output = -EBADF;
	struct worker_job job = {.timeout_usec = 120000000, .cancel_fd = -1};
	struct worker_outcome outcome;
	int r;

	job.request.options.memory_limit = 1ull << 30;
	while (argc > 1 && set(&job, argv[1])) {
		argc--;
		argv++;
	}
	if (argc < 5)
		return 9;
	bundle = open(argv[3], O_RDONLY | O_CLOEXEC);
	output = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (bundle < 0 || output < 0)
		return 9;
	job.program = argv[1];
	job.bundle_fd = bundle;
	job.output_fd = output;
	job.request.version = WORKER_REQUEST_VERSION;
	job.request.options.view = (uint32_t)atoi(argv[2]);
	job.request.options.report_limit = argc > 5 ? number(argv[5]) : 2u << 20;
	job.request.options.hash = argc > 6 && argv[6][0] != '0';
	job.request.options.has_deadline = argc > 7;
	job.request.options.deadline_ns = argc > 7 ? number(argv[7]) : 0;
	job.request.cpu_seconds = 60;
	r = worker_run(&job, &outcome);
	printf("condition %d signal %d exit %d error %d faults %llu\n", r, outcome.signal,
	       outcome.exit_status, outcome.error, (unsigned long long)outcome.faults);
	return r >= 0 ? r : 9;
}
