/*
 * The program ptsnap-decode: receives one request, enters the sandbox, decodes, and ends.
 *
 * ptsnapd and ptsnapctl start the program through decoder/run, which sends everything in one
 * message on fd 3: the request, the bundle, the output. The sandbox is complete before the bundle
 * is read.
 */
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "decoder/hot/ahead.h"
#include "decoder/hot/crew.h"
#include "decoder/worker/ask.h"
#include "decoder/worker/decode.h"
#include "decoder/worker/sandbox.h"
#include "proto/asan.h"
#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/channel.h"
#include "proto/worker.h"

#define CHANNEL_FD 3
/* A shorter bundle is not worth a thread (decoder/hot/ahead.c). */
#define THREADS_WORTH_BYTES (512u << 10)
/* Memory that a thread which walks ahead takes, with its share of what is kept of the trace ahead
 * (decoder/hot/ahead.c), times sixteen: such threads may have only a part of the memory. */
#define MEMORY_PER_THREAD (UINT64_C(36) << 20)
/* Bytes that a JSON view may write beyond its limit before the kernel stops it. */
#define FILE_SLACK (1u << 20)

#if BUILT_WITH_ASAN
/* The leak check at exit starts a tracer, which the sandbox forbids. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

/* The other end of the channel, for the functions of the sink. */
struct parent {
	struct ask ask;
	uint64_t began; /* when the request came, CLOCK_MONOTONIC, ns */
};

struct order {
	struct decode_options options;
	uint64_t cpu_seconds;
	int bundle_fd, output_fd;
	uint64_t bundle_bytes;
	struct crew *crew; /* all threads that there will ever be */
};

static int receive_order(struct order *ret)
{
	struct worker_request request;
	int fds[2];
	size_t size, n;
	int r = channel_receive(CHANNEL_FD, &request, sizeof(request), &size, fds, ARRAY_SIZE(fds),
				&n);

	if (r != 0)
		return r < 0 ? r : -EPIPE;
	if (size != sizeof(request) || n != 2)
		return -EPROTO;
	if (request.version != WORKER_REQUEST_VERSION)
		return -EPROTONOSUPPORT;
	if (!decode_options_are_sound(&request.options))
		return -EINVAL;
	*ret = (struct order){
		.options = request.options,
		.cpu_seconds = request.cpu_seconds,
		.bundle_fd = fds[0],
		.output_fd = fds[1],
	};
	return 0;
}

/* An error is ignored: if the channel is broken, the parent sees the end of this process. */
static void send_message(const struct worker_message *m)
{
	(void)channel_send(CHANNEL_FD, m, sizeof(*m), NULL, 0);
}

static int send_needed(void *userdata, uint32_t image, uint64_t offset, uint64_t size)
{
	struct parent *parent = userdata;

	return ask_keep(&parent->ask, image, offset, size);
}

static void send_progress(void *userdata, enum worker_phase phase, unsigned percent)
{
	const struct worker_message m = {
		.kind = WORKER_PROGRESS, .phase = phase, .percent = percent};

	(void)userdata;
	send_message(&m);
}

static uint64_t elapsed(void *userdata)
{
	const struct parent *parent = userdata;

	return now_ns(CLOCK_MONOTONIC) - parent->began;
}

/* Ends the process with the channel: the program that asked may not be able to kill this one. */
static void end_with_channel(void *userdata)
{
	struct pollfd channel = {.fd = CHANNEL_FD};

	(void)userdata;
	while (poll(&channel, 1, -1) < 0 || !(channel.revents & (POLLHUP | POLLERR)))
		;
	/* The channel may also end behind a result; that is no failure. */
	_exit(0);
}

/* Starts the thread that waits for the channel's end, and the threads that walk ahead, if there is
 * something to walk. */
static int start_threads(void *userdata)
{
	struct order *order = userdata;
	const struct decode_options *o = &order->options;
	uint64_t n = o->threads != 0 ? o->threads : ahead_count_cpus();
	int r;

	if (o->memory_limit > 0)
		n = MIN_OF(n, o->memory_limit / MEMORY_PER_THREAD + 1);
	if ((o->view != WORKER_VIEW_REPORT && o->view != WORKER_VIEW_SUMMARY) ||
	    o->skim != WORKER_SKIM_NONE || order->bundle_bytes < THREADS_WORTH_BYTES)
		n = 1;
	/* One of the N is the main thread; the thread for the channel takes its place. */
	r = crew_new((uint32_t)MIN_OF(n, (uint64_t)CREW_MAX_THREADS), &order->crew);
	if (r < 0)
		return r;
	/* Without that thread, the service's own limit of time ends the process. */
	(void)crew_start(order->crew, end_with_channel, NULL);
	return 0;
}

static int enter(struct order *order)
{
	const int keep[] = {CHANNEL_FD, order->bundle_fd, order->output_fd};
	struct sandbox_limits limits = {
		.keep = keep,
		.n_keep = ARRAY_SIZE(keep),
		.channel = CHANNEL_FD,
		.more_fds = ASK_MAX_OPEN,
		.cpu_seconds = order->cpu_seconds,
		.start = start_threads,
		.userdata = order,
	};
	off_t at = lseek(order->output_fd, 0, SEEK_CUR);
	struct stat st;
	unsigned missing;
	int r;

	if (order->options.view == WORKER_VIEW_REPORT && order->options.report_limit > 0 && at >= 0)
		limits.file_bytes = (uint64_t)at + order->options.report_limit + FILE_SLACK;
	if (fstat(order->bundle_fd, &st) < 0)
		return -errno;
	order->bundle_bytes = (uint64_t)st.st_size;
	if (order->options.memory_limit > 0) {
		limits.memory_bytes = order->options.memory_limit;
		limits.address_bytes =
			order->bundle_bytes + order->options.memory_limit + IMAGE_MAX_RESERVED;
	}
	r = sandbox_enter(&limits, &missing);
	if (r == 0 && (missing & SANDBOX_NO_UID))
		fprintf(stderr, "ptsnap-decode: cannot change from root to nobody; continuing in "
				"the sandbox\n");
	if (r == 0 && (missing & SANDBOX_NO_LANDLOCK))
		fprintf(stderr, "ptsnap-decode: this kernel has no Landlock; continuing with the "
				"filter of system calls alone\n");
	return r;
}

static int decode(const struct order *order, uint64_t began, const char *version,
		  uint64_t *ret_faults)
{
	struct parent parent = {.began = began};
	struct ask *ask = &parent.ask;
	uint64_t max_filled = IMAGE_MAX_FILLED;
	struct image_loader loader;
	const struct decode_sink sink = {
		.fd = order->output_fd,
		.version = version,
		.progress = send_progress,
		.keep = send_needed,
		.elapsed = elapsed,
		.userdata = &parent,
		.loader = &loader,
		.crew = order->crew,
	};
	CLEANUP(bundle_freep) struct bundle *bundle = NULL;
	int r = bundle_open(order->bundle_fd, &bundle);

	if (r < 0)
		return r;
	ask_init(ask, CHANNEL_FD, (uint32_t)bundle_manifest(bundle)->n_images,
		 order->options.debug != 0);
	/* Images may have half of the memory; decoding needs the other half. */
	if (order->options.memory_limit > 0)
		max_filled = MIN_OF(order->options.memory_limit / 2, max_filled);
	loader = ask_loader(ask, max_filled);
	r = decode_run(bundle, &order->options, &sink, ret_faults);
	ask_done(ask);
	return r;
}

static bool have_channel(void)
{
	int type = 0;
	socklen_t size = sizeof(type);

	return getsockopt(CHANNEL_FD, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
	       type == SOCK_SEQPACKET;
}

int main(int argc, char **argv)
{
	struct order order;
	uint64_t began, faults = 0;
	int r;

	if (argc == 2 && strcmp(argv[1], "--version") == 0)
		return printf("ptsnap-decode %s\n", PTSNAP_VERSION) < 0;
	if (argc != 1 || !have_channel()) {
		fprintf(stderr,
			"ptsnap-decode is started by ptsnapd and by \"ptsnapctl decode\".\n");
		return 2;
	}
	/* Threads get no heap of their own: for heaps, glibc would open files to count CPUs, and
	 * reserve much memory. */
	mallopt(M_ARENA_MAX, 1);
	r = receive_order(&order);
	began = now_ns(CLOCK_MONOTONIC);
	if (r == 0)
		r = enter(&order);
	if (r == 0)
		r = decode(&order, began, PTSNAP_VERSION, &faults);
	send_message(&(struct worker_message){
		.kind = WORKER_RESULT, .percent = 100, .error = r, .faults = faults});
	/* Handlers of exit() expect a process that may open files. */
	_exit(r == 0 ? 0 : 1);
}
