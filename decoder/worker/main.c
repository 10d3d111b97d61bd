/*
 * ptsnap-decode: decodes one snapshot and ends. Started by ptsnapd and ptsnapctl through
 * decoder/run/worker.c, which hands it everything by one message on fd 3: the request, the bundle,
 * the output. It parses what strangers wrote, so the sandbox closes before the bundle is touched;
 * it never opens anything.
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
#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/channel.h"
#include "proto/worker.h"

#define CHANNEL_FD 3
/* Shorter bundles are not worth a thread (decoder/flow/flow_ahead.c). */
#define THREADS_WORTH_BYTES (512u << 10)
/* Threads that walk ahead may have a part of the memory: so much each takes of it, with its share
 * of what is kept of the trace ahead (decoder/hot/ahead.c), times sixteen. */
#define MEMORY_PER_THREAD (UINT64_C(36) << 20)
/* What a JSON view may write beyond its limit before the kernel stops it. */
#define FILE_SLACK (1u << 20)

#ifdef __SANITIZE_ADDRESS__
/* The leak check at exit starts a tracer, which the sandbox does not let it. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

/* What the sink's functions need. */
struct parent {
	struct ask ask;
	uint64_t began; /* when the request was there, CLOCK_MONOTONIC, ns */
};

struct order {
	struct decode_options options;
	uint64_t cpu_seconds;
	int bundle_fd, output_fd;
	uint64_t bundle_bytes;
	struct crew *crew; /* all threads that there will be */
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

/* A broken channel is the parent's business: it sees the end of this process. */
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

static void send_result(int error, uint64_t faults)
{
	const struct worker_message m = {
		.kind = WORKER_RESULT, .percent = 100, .error = error, .faults = faults};

	send_message(&m);
}

static uint64_t file_limit(const struct order *order)
{
	off_t at = lseek(order->output_fd, 0, SEEK_CUR);

	if (order->options.view != WORKER_VIEW_REPORT || order->options.report_limit == 0 || at < 0)
		return 0;
	return (uint64_t)at + order->options.report_limit + FILE_SLACK;
}

/* Whoever started us may not be who can end us: without him nobody wants the report. */
static void end_with_channel(void *userdata)
{
	struct pollfd channel = {.fd = CHANNEL_FD};

	(void)userdata;
	while (poll(&channel, 1, -1) < 0 || !(channel.revents & (POLLHUP | POLLERR)))
		;
	/* Behind a result, too; that it is no longer wanted is no failure. */
	_exit(0);
}

/* Besides the main thread; none where nothing is walked by several. */
static uint32_t count_walkers(const struct order *order)
{
	const struct decode_options *o = &order->options;
	uint64_t n = o->threads != 0 ? o->threads : ahead_count_cpus();

	if ((o->view != WORKER_VIEW_REPORT && o->view != WORKER_VIEW_SUMMARY) ||
	    o->skim != WORKER_SKIM_NONE || order->bundle_bytes < THREADS_WORTH_BYTES)
		return 0;
	if (o->memory_limit > 0)
		n = MIN_OF(n, o->memory_limit / MEMORY_PER_THREAD + 1);
	return (uint32_t)MIN_OF(n, (uint64_t)CREW_MAX_THREADS) - 1;
}

static int start_threads(void *userdata)
{
	struct order *order = userdata;
	int r = crew_new(count_walkers(order) + 1, &order->crew);

	if (r < 0)
		return r;
	/* Where there is no thread for that the service's own limit of time is left. */
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
		.file_bytes = file_limit(order),
		.start = start_threads,
		.userdata = order,
	};
	struct stat st;
	unsigned missing;
	int r;

	if (fstat(order->bundle_fd, &st) < 0)
		return -errno;
	order->bundle_bytes = (uint64_t)st.st_size;
	if (order->options.memory_limit > 0) {
		limits.memory_bytes = order->options.memory_limit;
		limits.address_bytes =
			order->bundle_bytes + order->options.memory_limit + IMAGE_MAX_RESERVED;
	}
	r = sandbox_enter(&limits, &missing);
	/* <4>: warning, <6>: information, as sd-daemon(3) has it. */
	if (r == 0 && (missing & SANDBOX_NO_UID))
		fprintf(stderr, "<4>ptsnap-decode: started as root and may not change to nobody; "
				"going on in the sandbox\n");
	if (r == 0 && (missing & SANDBOX_NO_LANDLOCK))
		fprintf(stderr, "<6>ptsnap-decode: there is no Landlock here; the filter of system "
				"calls stands without it\n");
	return r;
}

/* Images may have half of the memory: what is decoded needs the other. */
static uint64_t image_limit(const struct decode_options *options)
{
	if (options->memory_limit == 0)
		return IMAGE_MAX_FILLED;
	return MIN_OF(options->memory_limit / 2, IMAGE_MAX_FILLED);
}

static int decode(const struct order *order, uint64_t began, const char *version,
		  uint64_t *ret_faults)
{
	struct parent parent = {.began = began};
	struct ask *ask = &parent.ask;
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
	loader = ask_loader(ask, image_limit(&order->options));
	r = decode_run(bundle, &order->options, &sink, ret_faults);
	ask_done(ask);
	return r;
}

static int usage(void)
{
	fprintf(stderr, "ptsnap-decode is started by ptsnapd and by \"ptsnapctl decode\".\n");
	return 2;
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
	if (argc != 1 || !have_channel())
		return usage();
	/* Threads get no heap of their own: glibc would open files to count CPUs, and reserve much.
	 */
	mallopt(M_ARENA_MAX, 1);
	r = receive_order(&order);
	began = now_ns(CLOCK_MONOTONIC);
	if (r == 0)
		r = enter(&order);
	if (r == 0)
		r = decode(&order, began, PTSNAP_VERSION, &faults);
	send_result(r, faults);
	/* Handlers of exit() were written for a process that may open files. */
	_exit(r == 0 ? 0 : 1);
}
