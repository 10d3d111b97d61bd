/*
 * The summary: one flat object for scripts and tests. Called by decode.c in ptsnap-decode.
 */
#include <inttypes.h>
#include <stdio.h>

#include "decoder/worker/views.h"
#include "proto/base.h"
#include "proto/json.h"

static void write_errors(struct json_writer *w, const struct gaps *g)
{
	int i;

	json_begin_object(w, "errors");
	for (i = FAULT_NONE + 1; i < FAULT_N_; i++)
		if (g->counts[i] > 0)
			json_u64(w, fault_name((enum fault)i), g->counts[i]);
	json_end_object(w);
}

static void write_tsc(struct json_writer *w, const char *key, uint64_t tsc)
{
	if (tsc == 0)
		json_null(w, key);
	else
		json_hex(w, key, tsc);
}

static void write_percent(struct json_writer *w, double percent)
{
	if (percent < 0)
		json_null(w, "coveragePercent");
	else
		json_fixed(w, "coveragePercent", percent, 2);
}

static void write_hash(struct json_writer *w, uint64_t hash)
{
	char text[17];

	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	json_string(w, "ipHash", text);
}

int views_summary(const struct decode *d, bool hash, bool pretty, int fd)
{
	const struct flow_stats total = decode_total(d);
	uint64_t head = MIN_OF(d->gaps.head_bytes, total.bytes);
	CLEANUP(json_writer_freep) struct json_writer *w = NULL;
	int r = json_writer_new_fd(fd, 0, pretty, &w);

	if (r < 0)
		return r;
	json_begin_object(w, NULL);
	json_u64(w, "instructions", total.instructions);
	json_u64(w, "branches", total.branches);
	json_u64(w, "bytes", total.bytes);
	json_u64(w, "bytesDecoded", total.bytes_decoded);
	json_u64(w, "headBytes", head);
	json_u64(w, "gaps", d->gaps.total);
	write_errors(w, &d->gaps);
	json_u64(w, "psbs", total.psbs);
	json_u64(w, "packets", total.packets);
	write_tsc(w, "tscFirst", total.tsc_first);
	write_tsc(w, "tscLast", total.tsc_last);
	json_u64(w, "returns", total.returns);
	json_u64(w, "compressedReturns", total.compressed_returns);
	write_percent(w, decode_percent(total.bytes_decoded, total.bytes - head));
	if (hash)
		write_hash(w, d->hash);
	json_end_object(w);
	return json_writer_finish(w);
}
