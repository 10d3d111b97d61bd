/*
 * Runs a decode of calls in a second thread, and reads its lines from a pipe in this one.
 */
#include "ctl/calls/calls.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/memfd.h"
#include "proto/report.h"

#include "ctl/base/say.h"
#include "ctl/decode/decode_run.h"

/* --- The rules of a stream --- */

struct thread {
	uint64_t depth, time;
};

struct reader {
	calls_fn fn;
	calls_line_fn line_fn; /* instead of all below: lines as they are */
	void *userdata;
	struct thread *threads; /* by number; the first one is of items without a thread */
	size_t n_threads, capacity;
	uint32_t n_functions;
	bool begun, ended;
	int result; /* of fn, if that was not 0 */
};

/* Whether the rules allow a thread that is not known. */
static bool needs_thread(enum callstream_kind kind)
{
	return kind == CALLSTREAM_BEGIN || kind == CALLSTREAM_FINISH || kind == CALLSTREAM_ON ||
	       kind == CALLSTREAM_OFF;
}

static bool has_time(enum callstream_kind kind)
{
	return needs_thread(kind) || kind == CALLSTREAM_GAP || kind == CALLSTREAM_MARK;
}

static bool order_is_good(struct reader *r, const struct callstream_item *item)
{
	struct thread *t = &r->threads[item->thread];

	if (needs_thread(item->kind) && item->thread == 0)
		return false;
	if (item->kind == CALLSTREAM_FINISH && t->depth == 0)
		return false;
	/* Items without a thread are of several CPUs. */
	if (item->thread != 0 && has_time(item->kind)) {
		if (item->time < t->time)
			return false;
		t->time = item->time;
	}
	t->depth += item->kind == CALLSTREAM_BEGIN;
	t->depth -= item->kind == CALLSTREAM_FINISH;
	return true;
}

/* 0, -EBADMSG or -ENOMEM. */
static int check(struct reader *r, const struct callstream_item *item)
{
	if (r->ended || r->begun == (item->kind == CALLSTREAM_HEAD))
		return -EBADMSG;
	r->begun = true;
	r->ended = item->kind == CALLSTREAM_END;
	if (item->kind == CALLSTREAM_THREAD) {
		if (item->thread != r->n_threads)
			return -EBADMSG;
		if (ARRAY_RESERVE(r->threads, r->capacity, r->n_threads + 1) < 0)
			return -ENOMEM;
		r->threads[r->n_threads++] = (struct thread){0};
		return 0;
	}
	if (item->kind == CALLSTREAM_FUNCTION)
		return item->function != 0 && item->function == ++r->n_functions ? 0 : -EBADMSG;
	if (item->thread >= r->n_threads || item->function > r->n_functions)
		return -EBADMSG;
	return order_is_good(r, item) ? 0 : -EBADMSG;
}

static int take_line(struct reader *r, char *line)
{
	struct callstream_item item;
	int result;

	if (r->line_fn)
		return r->result = r->line_fn(r->userdata, line);
	result = callstream_parse(line, &item);
	if (result == 0)
		result = check(r, &item);
	if (result == 0)
		r->result = r->fn(r->userdata, &item);
	return result != 0 ? result : r->result;
}

/* --- Lines of a file --- */

#define BUFFER (2u * CALLSTREAM_MAX_LINE)

/* Takes the whole lines of the *N bytes at BUFFER and moves the rest to its beginning. */
static int take_lines(struct reader *r, char *buffer, size_t *n)
{
	char *at = buffer, *newline;
	int result = 0;

	while (result == 0 && (newline = memchr(at, '\n', *n - (size_t)(at - buffer)))) {
		/* A zero byte would hide the rest of its line. */
		if (memchr(at, '\0', (size_t)(newline - at)))
			return -EBADMSG;
		*newline = '\0';
		result = take_line(r, at);
		at = newline + 1;
	}
	*n -= (size_t)(at - buffer);
	memmove(buffer, at, *n);
	return result == 0 && *n >= CALLSTREAM_MAX_LINE ? -EBADMSG : result;
}

static int read_all(struct reader *r, int fd)
{
	CLEANUP_FREE char *buffer = malloc(BUFFER);
	size_t n = 0;
	int result = 0;

	if (!buffer || ARRAY_RESERVE(r->threads, r->capacity, 1) < 0)
		return -ENOMEM;
	r->threads[0] = (struct thread){0};
	r->n_threads = 1;
	while (result == 0) {
		ssize_t got = read(fd, buffer + n, BUFFER - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return (r->ended || r->line_fn) && n == 0 ? 0 : -ENODATA;
		n += (size_t)got;
		result = take_lines(r, buffer, &n);
	}
	return result;
}

int calls_read_fd(int fd, calls_fn fn, void *userdata)
{
	struct reader r = {.fn = fn, .userdata = userdata};
	int result = read_all(&r, fd);

	free(r.threads);
	return result;
}

/* --- The decode --- */

struct decoding {
	struct decode_request request;
	int bundle_fd, output_fd, cancel_fd;
	int code;
};

static void *decode(void *userdata)
{
	struct decoding *d = userdata;

	d->code = decode_run_worker(&d->request, d->bundle_fd, d->output_fd, d->cancel_fd);
	d->output_fd = close_fd(d->output_fd);
	return NULL;
}

static void set_request(struct decode_request *q, const struct calls_source *source,
			enum worker_view view)
{
	decode_request_init(q, source->settings);
	q->options.view = view;
	q->options.report_limit = 0;
	q->options.show = source->show;
	q->options.no_symbols = source->no_names;
	q->options.debug = !source->no_names;
	q->options.lines = source->lines;
	q->options.threads = source->threads;
	q->options.slice = source->span;
	if (source->memory > 0)
		q->options.memory_limit = source->memory;
	q->bundle = source->operand;
	q->worker = source->worker;
	q->sysroot = source->sysroot;
	assert(source->n_symbols <= DECODE_MAX_SYMBOLS);
	for (; q->n_symbols < source->n_symbols; q->n_symbols++)
		q->symbols[q->n_symbols] = source->symbols[q->n_symbols];
	q->debuginfod = source->debuginfod;
}

/* What the caller is told: the decode knows best why the stream was cut off. */
static int judge(const struct reader *r, const struct decoding *d, int result)
{
	if (r->result != 0)
		return r->result;
	if (result == 0 || (result == -ENODATA && d->code != 0))
		return d->code;
	if (result == -ENOMEM)
		return say_error(EXIT_CODE_FAILURE, "out of memory");
	if (result == -EBADMSG || result == -ENODATA)
		return say_error(EXIT_CODE_FAILURE,
				 "%s: ptsnap-decode wrote an invalid stream of calls; is it the "
				 "ptsnap-decode of this version?",
				 d->request.bundle);
	return say_error(EXIT_CODE_FAILURE, "%s: %s", d->request.bundle, strerror(-result));
}

/* Reads the stream while the second thread decodes. */
static int read_decoding(struct reader *r, struct decoding *d, int input_fd)
{
	const uint64_t one = 1;
	pthread_t thread;
	int result = pthread_create(&thread, NULL, decode, d);

	if (result != 0)
		return say_error(EXIT_CODE_FAILURE, "cannot start a thread: %s", strerror(result));
	result = read_all(r, input_fd);
	/* Nobody reads on: the decoder must not wait for that. */
	if (result != 0)
		(void)!write(d->cancel_fd, &one, sizeof(one));
	pthread_join(thread, NULL);
	return judge(r, d, result);
}

static int read_view(struct reader *r, const struct calls_source *source, enum worker_view view)
{
	struct decoding d = {.bundle_fd = -EBADF, .output_fd = -EBADF, .cancel_fd = -EBADF};
	int ends[2] = {-EBADF, -EBADF}, result;

	if (source->no_names && source->lines)
		return say_error(EXIT_CODE_USAGE, "give either --no-names or --lines");
	set_request(&d.request, source, view);
	result = decode_open(&d.request, &d.bundle_fd);
	if (result == 0 && source->opened)
		result = source->opened(r->userdata, d.bundle_fd);
	if (result == 0 && (pipe2(ends, O_CLOEXEC) < 0 ||
			    (d.cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0))
		result = say_error(EXIT_CODE_FAILURE, "cannot make a pipe: %m");
	d.output_fd = ends[1];
	if (result == 0)
		result = read_decoding(r, &d, ends[0]);
	close_fd(ends[0]);
	close_fd(d.output_fd);
	close_fd(d.cancel_fd);
	close_fd(d.bundle_fd);
	free(r->threads);
	decode_request_done(&d.request);
	return result;
}

int calls_read(const struct calls_source *source, calls_fn fn, void *userdata)
{
	struct reader r = {.fn = fn, .userdata = userdata};

	return read_view(&r, source, WORKER_VIEW_CALLS);
}

int calls_read_lines(const struct calls_source *source, enum worker_view view, calls_line_fn fn,
		     void *userdata)
{
	struct reader r = {.line_fn = fn, .userdata = userdata};

	return read_view(&r, source, view);
}

int calls_report(const struct calls_source *source, int bundle_fd, int *ret_fd)
{
	CLEANUP(decode_request_done) struct decode_request q;
	CLEANUP_CLOSE int fd = -EBADF;
	struct settings settings = *source->settings;
	int r;

	set_request(&q, source, WORKER_VIEW_REPORT);
	q.options.report_limit = REPORT_DEFAULT_LIMIT;
	/* Suspects are those of the whole snapshot. */
	q.options.slice = (struct decode_slice){0};
	settings.quiet = true; /* the decode of calls has the same remarks */
	q.settings = &settings;
	if (memfd_new("ptsnap-report", 0, &fd) < 0)
		return say_error(EXIT_CODE_FAILURE, "cannot make a memory file: %m");
	r = decode_run_worker(&q, bundle_fd, fd, -1);
	if (r == 0)
		*ret_fd = take_fd(&fd);
	return r;
}
