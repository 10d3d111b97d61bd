/*
 * A whole decode of a bundle, as ptsnap-decode does it. Invariant: what it writes is one complete
 * JSON object, whatever the bundle holds, and no longer than asked.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <json-c/json.h>

#include "decoder/worker/decode.h"
#include "proto/base.h"
#include "proto/memfd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LIMIT 262144

static void decode(const struct bundle *bundle, uint32_t view)
{
	const struct worker_request request = {.view = view, .hash = 1, .report_limit = LIMIT};
	struct decode_sink sink = {.version = "fuzz"};
	static char text[LIMIT + 1];
	struct json_object *o;
	uint64_t faults;
	ssize_t n;

	assert(memfd_new("out", 0, &sink.fd) == 0);
	assert(decode_run(bundle, &request, &sink, &faults) == 0);
	n = pread(sink.fd, text, sizeof(text), 0);
	assert(n > 0 && n <= LIMIT);
	text[n] = '\0';
	o = json_tokener_parse(text);
	assert(json_object_is_type(o, json_type_object));
	json_object_put(o);
	close(sink.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(bundle_freep) struct bundle *bundle = NULL;
	CLEANUP_CLOSE int fd = -EBADF;

	assert(memfd_new("fuzz", 0, &fd) == 0 && memfd_write_all(fd, data, size) == 0);
	if (bundle_open(fd, &bundle) < 0)
		return 0;
	decode(bundle, WORKER_VIEW_SUMMARY);
	decode(bundle, WORKER_VIEW_REPORT);
	return 0;
}
