/*
 * Fuzzes a whole decode of a bundle, as ptsnap-decode does it in its sandbox, with threads and with
 * images outside of the bundle. Invariants: for any bundle, a report and a summary are one complete
 * JSON object, no longer than requested, and the same for any number of threads; views made of
 * lines end, and are printable; the pieces reported as needed lie within the images.
 *
 * An input is a bundle, whose size is a multiple of a tar block, and behind it the bytes of one
 * request (struct wish). Without those bytes the bundle is decoded in all ways, one after another:
 * that is what a seed of the corpus is for. The mutator for libFuzzer adds the bytes, because one
 * request at a time is twenty times as fast.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "decoder/hot/ahead.h"
#include "decoder/hot/crew.h"
#include "decoder/worker/decode.h"
#include "proto/base.h"
#include "proto/bundle/bundle_tar.h"
#include "proto/memfd.h"
#include "sideband/symbols/image.h"
#include "tests/fuzz/replay.h"
#include "tests/support/flow_look.h"
#include "tests/support/seams.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LIMIT 262144
/* Threads of the crew, as many as fit a small host. */
#define THREADS 4u
/* The first image's bytes begin again at each page that follows on their end. */
#define PAGE 4096u

struct input {
	const uint8_t *image; /* what images outside of the bundle consist of */
	size_t size;
	uint64_t file_size; /* of those images */
	uint32_t threads;
	uint64_t now; /* ns since the request; each look at the clock adds one */
};

/* --- Threads --- */

/* The linker puts these wrappers before functions of the decoder (local.mk), as no input is long
 * enough that threads are worth it: threads begin at nearer PSBs, and may go as far as they can
 * before the walk asks for their results, which then does not depend on timing. */

static struct {
	uint32_t thread_bytes;
	bool settle;
} seams;

/* Everything that the inputs reached. */
static struct {
	uint64_t steps; /* by threads other than the walk's */
	uint64_t far;	/* bytes that were needed of images behind their first 64 KiB */
} reached;

int __wrap_flow_new(const struct flow_config *config, struct flow **ret)
{
	struct flow_config with_seams = *config;

	with_seams.thread_bytes = seams.thread_bytes;
	return __real_flow_new(&with_seams, ret);
}

void __wrap_flow_free(struct flow *f)
{
	if (f)
		reached.steps += flow_look_settle(f);
	__real_flow_free(f);
}

const struct ahead_piece *__wrap_ahead_take(struct ahead_trace *t, const uint8_t *pos,
					    uint64_t context, const uint8_t **ret_limit)
{
	if (seams.settle)
		ahead_settle(t);
	return __real_ahead_take(t, pos, context, ret_limit);
}

void fuzz_report(void)
{
	printf("steps by other threads: %" PRIu64 "\n", reached.steps);
	printf("bytes of images behind 64 KiB: %" PRIu64 "\n", reached.far);
}

/* The worker has its threads before it reads a bundle; they serve all inputs. */
static struct crew *crew(void)
{
	static struct crew *c;

	if (!c)
		assert(crew_new(THREADS, &c) == 0);
	return c;
}

/* --- Images --- */

static int open_image(void *userdata, uint32_t image, uint64_t *ret_size)
{
	const struct input *in = userdata;

	*ret_size = image % 4 == 3 ? UINT64_MAX : in->file_size;
	return image % 8 == 7 ? -ENOENT : 0;
}

/* A file that is larger than the image has the image again and again. */
static ssize_t read_image(void *userdata, uint32_t image, uint64_t offset, void *to, size_t size)
{
	const struct input *in = userdata;
	const uint64_t period = (in->size + PAGE - 1) / PAGE * PAGE;
	uint8_t *out = to;

	(void)image;
	if (offset >= in->file_size || period == 0)
		return 0;
	size = MIN_OF(size, (size_t)(in->file_size - offset));
	for (size_t i = 0; i < size;) {
		const size_t at = (size_t)((offset + i) % period);
		const size_t end = at < in->size ? in->size : (size_t)period;
		const size_t n = MIN_OF(size - i, end - at);

		if (at < in->size)
			memcpy(out + i, in->image + at, n);
		else
			memset(out + i, 0, n);
		i += n;
	}
	return (ssize_t)size;
}

/* Image bytes of the bundle are read under other numbers, too. */
static int open_debug(void *userdata, uint32_t image, const uint8_t *build_id, size_t id_size,
		      uint64_t *ret_size)
{
	assert(id_size > 0 && id_size <= 20 && build_id != NULL);
	return open_image(userdata, image, ret_size);
}

static int keep(void *userdata, uint32_t image, uint64_t offset, uint64_t size)
{
	const struct input *in = userdata;

	(void)image;
	assert(size > 0 && offset < in->file_size && size <= in->file_size - offset);
	reached.far += offset >= 65536 ? size : 0;
	return 0;
}

static uint64_t elapsed(void *userdata)
{
	struct input *in = userdata;

	return in->now++;
}

/* The result of a request, which is JSON. */
static void decode_once(const struct bundle *bundle, const struct decode_options *options,
			struct input *in, char text[LIMIT + 1], size_t *ret_size)
{
	const struct image_loader loader = {.open = open_image,
					    .read = read_image,
					    .userdata = in,
					    .max_filled = 64u << 20,
					    .debug = open_debug};
	struct decode_sink sink = {.version = "fuzz",
				   .keep = keep,
				   .elapsed = elapsed,
				   .userdata = in,
				   .loader = &loader,
				   .crew = crew()};
	struct json_object *o;
	uint64_t faults;
	ssize_t n;

	assert(memfd_new("out", 0, &sink.fd) == 0);
	assert(decode_run(bundle, options, &sink, &faults) == 0);
	n = pread(sink.fd, text, LIMIT + 1, 0);
	assert(n > 0 && n <= LIMIT);
	text[n] = '\0';
	o = json_tokener_parse(text);
	assert(json_object_is_type(o, json_type_object));
	json_object_put(o);
	close(sink.fd);
	*ret_size = (size_t)n;
}

/* Decodes with one thread, and with several, if there may be several; the results are the same. */
static void decode_request(const struct bundle *bundle, const struct decode_options *options,
			   struct input *in)
{
	static char one[LIMIT + 1], several[LIMIT + 1];
	struct decode_options o = *options;
	size_t n_one, n_several;

	o.threads = 1;
	decode_once(bundle, &o, in, one, &n_one);
	o.threads = in->threads;
	if (in->threads < 2)
		return;
	decode_once(bundle, &o, in, several, &n_several);
	/* A decode within a deadline looks at the clock as often as there are batches. */
	assert(o.has_deadline || (n_one == n_several && memcmp(one, several, n_one) == 0));
}

static void decode(const struct bundle *bundle, uint32_t view, struct input *in)
{
	const struct decode_options options = {
		.view = view, .hash = 1, .report_limit = LIMIT, .keep = 1};

	decode_request(bundle, &options, in);
}

/* As after a failed decoder: only code is read from the images. */
static void decode_without_symbols(const struct bundle *bundle, struct input *in)
{
	const struct decode_options options = {.report_limit = LIMIT, .keep = 1, .no_symbols = 1};

	decode_request(bundle, &options, in);
}

/* Reads everything else, too: DWARF, and separate debug files. */
static void decode_with_lines(const struct bundle *bundle, struct input *in)
{
	const struct decode_options options = {
		.report_limit = LIMIT, .keep = 1, .lines = 1, .debug = 1};

	decode_request(bundle, &options, in);
}

/* Reports for one user and for no user, whatever users the bundle has. */
static void decode_for_one(const struct bundle *bundle, struct input *in)
{
	struct decode_options options = {
		.report_limit = LIMIT, .has_only_uid = 1, .only_uid = 1000};

	decode_request(bundle, &options, in);
	options.only_uid = UINT32_MAX - 1;
	decode_request(bundle, &options, in);
}

static void decode_some_lines(const struct bundle *bundle, uint32_t view, uint64_t show,
			      enum worker_skim skim)
{
	const struct decode_options options = {.view = view, .show = show, .skim = skim};
	struct decode_sink sink = {.version = "fuzz"};
	static char text[LIMIT];
	uint64_t faults;
	ssize_t n;

	assert(memfd_new("out", 0, &sink.fd) == 0);
	assert(decode_run(bundle, &options, &sink, &faults) == 0);
	n = pread(sink.fd, text, sizeof(text), 0);
	assert(n >= 0);
	/* ptxed has a tab in its statistics. */
	for (ssize_t i = 0; i < n; i++)
		assert(text[i] == '\n' || (text[i] >= 0x20 && text[i] < 0x7f) ||
		       (text[i] == '\t' &&
			(view == WORKER_VIEW_CALLS ||
			 (show & (WORKER_SHOW_STAT | WORKER_SHOW_STAT_BLOCKS)))));
	close(sink.fd);
}

static void decode_lines(const struct bundle *bundle, uint32_t view, uint64_t show)
{
	decode_some_lines(bundle, view, show, WORKER_SKIM_NONE);
}

static void skim(const struct bundle *bundle, enum worker_skim how, struct input *in)
{
	const struct decode_options map = {.skim = how, .report_limit = LIMIT};

	decode_request(bundle, &map, in);
	decode_some_lines(bundle, WORKER_VIEW_BRANCHES, 0, how);
	decode_some_lines(bundle, WORKER_VIEW_BRANCHES, WORKER_SHOW_TIME | WORKER_SHOW_PLACES, how);
}

/* Some rounds, some last stretches, and the whole trace. */
static void decode_within(const struct bundle *bundle, uint64_t deadline, struct input *in)
{
	const struct decode_options options = {
		.report_limit = LIMIT, .keep = 1, .has_deadline = 1, .deadline_ns = deadline};

	in->now = 0;
	decode_request(bundle, &options, in);
}

/* All forms, the most expensive first. */
static void decode_packets(const struct bundle *bundle)
{
	decode_lines(bundle, WORKER_VIEW_PACKETS,
		     WORKER_SHOW_RAW | WORKER_SHOW_LASTIP | WORKER_SHOW_EXEC_MODE |
			     WORKER_SHOW_TIME | WORKER_SHOW_TIME_DELTA | WORKER_SHOW_SB_VERBOSE |
			     WORKER_SHOW_SB_FILENAME | WORKER_SHOW_SB_OFFSET | WORKER_SHOW_SB_TIME);
	decode_lines(bundle, WORKER_VIEW_PACKETS,
		     WORKER_SHOW_NO_SYNC | WORKER_SHOW_TCAL | WORKER_SHOW_KEEP_TCAL |
			     WORKER_SHOW_SB_COMPACT);
}

static void decode_insns(const struct bundle *bundle)
{
	decode_lines(bundle, WORKER_VIEW_INSNS,
		     WORKER_SHOW_PTXED | WORKER_SHOW_EVENT_TICK | WORKER_SHOW_EVENT_TIME |
			     WORKER_SHOW_SB_COMPACT | WORKER_SHOW_SB_SWITCH | WORKER_SHOW_SB_WARN);
	decode_lines(bundle, WORKER_VIEW_INSNS,
		     WORKER_SHOW_PTXED | WORKER_SHOW_BLOCKS | WORKER_SHOW_EVENT_IP |
			     WORKER_SHOW_EVENT_IFLAGS | WORKER_SHOW_RESYNC_ON_ERROR |
			     WORKER_SHOW_END_ON_CALL | WORKER_SHOW_END_ON_JUMP);
}

/* --- Requests --- */

/* One request; bytes that an input does not have are 0. */
struct wish {
	uint8_t how;	     /* which of the requests below */
	uint8_t threads;     /* modulo */
	uint8_t thread_bits; /* modulo; a thread takes 2^this bytes of the trace at once; 0x80:
				the walk does not wait for threads */
	uint8_t file_bits;   /* modulo; images outside of the bundle have 2^this bytes more */
	uint8_t deadline[4]; /* ns, little-endian */
	uint8_t show[8];     /* little-endian */
};

#define N_WAYS 13u

static void decode_way(const struct bundle *bundle, const struct wish *wish, struct input *in)
{
	uint64_t show = 0, deadline = 0;

	for (size_t i = sizeof(wish->show); i-- > 0;)
		show = show << 8 | wish->show[i];
	for (size_t i = sizeof(wish->deadline); i-- > 0;)
		deadline = deadline << 8 | wish->deadline[i];
	switch (wish->how % N_WAYS) {
	case 0: decode(bundle, WORKER_VIEW_REPORT, in); break;
	case 1: decode(bundle, WORKER_VIEW_SUMMARY, in); break;
	case 2: decode_without_symbols(bundle, in); break;
	case 3: decode_with_lines(bundle, in); break;
	case 4: decode_for_one(bundle, in); break;
	case 5: decode_within(bundle, deadline, in); break;
	case 6: decode_lines(bundle, WORKER_VIEW_PACKETS, show); break;
	case 7: decode_lines(bundle, WORKER_VIEW_BRANCHES, show); break;
	case 8: decode_lines(bundle, WORKER_VIEW_INSNS, show); break;
	case 9: decode_lines(bundle, WORKER_VIEW_EVENTS, show); break;
	case 10: skim(bundle, WORKER_SKIM_PSB, in); break;
	case 11: decode_lines(bundle, WORKER_VIEW_CALLS, 0); break;
	default: skim(bundle, WORKER_SKIM_TIP, in); break;
	}
}

static void decode_all_ways(const struct bundle *bundle, struct input *in)
{
	decode(bundle, WORKER_VIEW_SUMMARY, in);
	decode(bundle, WORKER_VIEW_REPORT, in);
	decode_without_symbols(bundle, in);
	decode_with_lines(bundle, in);
	decode_for_one(bundle, in);
	decode_within(bundle, 0, in);
	decode_within(bundle, 200000, in);
	decode_within(bundle, UINT64_MAX, in);
	decode_packets(bundle);
	decode_insns(bundle);
	decode_lines(bundle, WORKER_VIEW_EVENTS, 0);
	decode_lines(bundle, WORKER_VIEW_CALLS, 0);
	skim(bundle, WORKER_SKIM_PSB, in);
	skim(bundle, WORKER_SKIM_TIP, in);
}

/* Images outside of the bundle have the bytes of the first image inside; if there is none, those of
 * the bundle. */
static void choose_image(const struct bundle *bundle, const uint8_t *data, size_t size,
			 struct input *in)
{
	in->image = NULL;
	for (size_t i = 0; i < bundle_manifest(bundle)->n_images && !in->image; i++)
		in->image = bundle_image(bundle, i, &in->size);
	if (!in->image) {
		in->image = data;
		in->size = size;
	}
	in->file_size = in->size;
}

/* Returns 0, and in an ordinary build 1 for an input that is no bundle. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(bundle_freep) struct bundle *bundle = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	const size_t more = size % BUNDLE_BLOCK;
	struct input in = {.threads = THREADS};
	struct wish wish = {0};

	size -= more;
	memcpy(&wish, data + size, MIN_OF(more, sizeof(wish)));
	assert(memfd_new("fuzz", 0, &fd) == 0 && memfd_write_all(fd, data, size) == 0);
	if (bundle_open(fd, &bundle) < 0)
		return FUZZ_REJECTED;
	choose_image(bundle, data, size, &in);
	seams.thread_bytes = 64;
	seams.settle = true;
	if (more == 0) {
		decode_all_ways(bundle, &in);
		in.file_size += 1u << 20;
		decode(bundle, WORKER_VIEW_REPORT, &in);
		return 0;
	}
	in.threads = 1 + wish.threads % (THREADS + 1);
	seams.thread_bytes = 1u << wish.thread_bits % 16;
	seams.settle = (wish.thread_bits & 0x80) == 0;
	in.file_size += wish.file_bits > 0 ? UINT64_C(1) << wish.file_bits % 27 : 0;
	decode_way(bundle, &wish, &in);
	return 0;
}
