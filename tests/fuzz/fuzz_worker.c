/*
 * Fuzzes a whole decode of a bundle, as ptsnap-decode does it. Invariants: for any bundle, a report
 * and a summary are one complete JSON object, no longer than requested; views made of lines end,
 * and are printable. Images outside of the bundle have the same bytes as those in the bundle; the
 * pieces reported as needed lie within the images.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <json-c/json.h>

#include "decoder/worker/decode.h"
#include "proto/base.h"
#include "proto/memfd.h"
#include "sideband/symbols/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LIMIT 262144

struct input {
	const uint8_t *data;
	size_t size;
	uint64_t now; /* ns since the request; each look at the clock adds one */
};

static int open_image(void *userdata, uint32_t image, uint64_t *ret_size)
{
	const struct input *in = userdata;

	*ret_size = image % 4 == 3 ? UINT64_MAX : in->size;
	return image % 8 == 7 ? -ENOENT : 0;
}

static ssize_t read_image(void *userdata, uint32_t image, uint64_t offset, void *to, size_t size)
{
	const struct input *in = userdata;

	(void)image;
	if (offset >= in->size)
		return 0;
	size = MIN_OF(size, (size_t)(in->size - offset));
	memcpy(to, in->data + offset, size);
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
	assert(size > 0 && offset < in->size && size <= in->size - offset);
	return 0;
}

static uint64_t elapsed(void *userdata)
{
	struct input *in = userdata;

	return in->now++;
}

static void decode_request(const struct bundle *bundle, const struct decode_options *options,
			   struct input *in)
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
				   .loader = &loader};
	static char text[LIMIT + 1];
	struct json_object *o;
	uint64_t faults;
	ssize_t n;

	assert(memfd_new("out", 0, &sink.fd) == 0);
	assert(decode_run(bundle, options, &sink, &faults) == 0);
	n = pread(sink.fd, text, sizeof(text), 0);
	assert(n > 0 && n <= LIMIT);
	text[n] = '\0';
	o = json_tokener_parse(text);
	assert(json_object_is_type(o, json_type_object));
	json_object_put(o);
	close(sink.fd);
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
	for (ssize_t i = 0; i < n; i++)
		assert(text[i] == '\n' || (text[i] >= 0x20 && text[i] < 0x7f));
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(bundle_freep) struct bundle *bundle = NULL;
	CLEANUP_CLOSE int fd = -EBADF;
	struct input in = {data, size, 0};

	assert(memfd_new("fuzz", 0, &fd) == 0 && memfd_write_all(fd, data, size) == 0);
	if (bundle_open(fd, &bundle) < 0)
		return 0;
	decode(bundle, WORKER_VIEW_SUMMARY, &in);
	decode(bundle, WORKER_VIEW_REPORT, &in);
	decode_without_symbols(bundle, &in);
	decode_with_lines(bundle, &in);
	decode_for_one(bundle, &in);
	decode_within(bundle, 0, &in);
	decode_within(bundle, 200000, &in);
	decode_within(bundle, UINT64_MAX, &in);
	decode_packets(bundle);
	decode_lines(bundle, WORKER_VIEW_INSNS,
		     WORKER_SHOW_PTXED | WORKER_SHOW_EVENT_TICK | WORKER_SHOW_EVENT_TIME |
			     WORKER_SHOW_SB_COMPACT | WORKER_SHOW_SB_SWITCH | WORKER_SHOW_SB_WARN);
	decode_lines(bundle, WORKER_VIEW_INSNS,
		     WORKER_SHOW_PTXED | WORKER_SHOW_BLOCKS | WORKER_SHOW_EVENT_IP |
			     WORKER_SHOW_EVENT_IFLAGS | WORKER_SHOW_RESYNC_ON_ERROR |
			     WORKER_SHOW_END_ON_CALL | WORKER_SHOW_END_ON_JUMP);
	decode_lines(bundle, WORKER_VIEW_EVENTS, 0);
	skim(bundle, WORKER_SKIM_PSB, &in);
	skim(bundle, WORKER_SKIM_TIP, &in);
	return 0;
}
