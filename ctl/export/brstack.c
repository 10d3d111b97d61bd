/*
 * Branch stacks for AutoFDO and BOLT, in the lines of `perf script -F ip,brstack': an address, and
 * the branches before it, newest first. Here every branch of the trace is in exactly one stack.
 */
#include "ctl/export/export_private.h"

#include <stdio.h>
#include <sys/mman.h>

#include "proto/bundle/bundle.h"
#include "proto/perf/perfrecord.h"

struct brstack {
	struct out out;
	uint64_t from[BRSTACK_DEPTH], to[BRSTACK_DEPTH];
	size_t n;
	uint64_t total;
};

int brstack_new(int fd, struct brstack **ret)
{
	struct brstack *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	out_init(&b->out, fd);
	*ret = b;
	return 0;
}

void brstack_freep(struct brstack **b)
{
	free(*b);
	*b = NULL;
}

/* Format: tools/perf/util/event.c, perf_event__fprintf_mmap2(). */
static void write_map(struct brstack *b, const struct perfrecord *record)
{
	const uint32_t prot = record->u.mmap2.prot;
	char path[EXPORT_MAX_NAME + 1], line[256];

	snprintf(line, sizeof(line),
		 "PERF_RECORD_MMAP2 %d/%d: [%#jx(%#jx) @ %#jx %02x:%02x %ju %ju]: %c%c%c%c ",
		 (int)record->u.mmap2.pid, (int)record->u.mmap2.tid,
		 (uintmax_t)record->u.mmap2.addr, (uintmax_t)record->u.mmap2.len,
		 (uintmax_t)record->u.mmap2.pgoff, record->u.mmap2.maj, record->u.mmap2.min,
		 (uintmax_t)record->u.mmap2.ino, (uintmax_t)record->u.mmap2.ino_generation,
		 prot & PROT_READ ? 'r' : '-', prot & PROT_WRITE ? 'w' : '-',
		 prot & PROT_EXEC ? 'x' : '-', record->u.mmap2.flags & MAP_SHARED ? 's' : 'p');
	out_text(&b->out, line);
	names_clean(record->u.mmap2.filename, path);
	out_text(&b->out, path);
	out_block(&b->out, "\n", 1);
}

int brstack_maps(struct brstack *b, const struct bundle *bundle)
{
	size_t size, at = 0;
	const uint8_t *sideband = bundle_sideband(bundle, &size);
	struct perfrecord record;

	while (at < size) {
		int r = perfrecord_parse(sideband + at, size - at, &record);

		if (r == 0 && record.type == PERF_RECORD_MMAP2 && record.u.mmap2.prot & PROT_EXEC)
			write_map(b, &record);
		if (r < 0 && record.size == 0)
			break; /* the decoder tells more about a damaged sideband */
		at += record.size;
	}
	return b->out.error;
}

/* The fields behind the addresses: predicted or not, in a transaction, abort, cycles. The trace
 * does not tell any of these. */
static void write_stack(struct brstack *b)
{
	char address[24];

	if (b->n == 0)
		return;
	snprintf(address, sizeof(address), " %16jx", (uintmax_t)b->to[b->n - 1]);
	out_text(&b->out, address);
	for (size_t i = b->n; i-- > 0;) {
		out_block(&b->out, " ", 1);
		out_hex(&b->out, b->from[i]);
		out_block(&b->out, "/", 1);
		out_hex(&b->out, b->to[i]);
		out_text(&b->out, "/-/-/-/0");
	}
	out_block(&b->out, "\n", 1);
	b->total += b->n;
	b->n = 0;
}

/* Reads a hex number without 0x. */
static bool get_hex(const char **text, uint64_t *ret)
{
	const char *at = *text;
	uint64_t v = 0;

	for (; at - *text < 16; at++) {
		if (*at >= '0' && *at <= '9')
			v = v << 4 | (uint64_t)(*at - '0');
		else if (*at >= 'a' && *at <= 'f')
			v = v << 4 | (uint64_t)(*at - 'a' + 10);
		else
			break;
	}
	*ret = v;
	if (at == *text)
		return false;
	*text = at;
	return true;
}

int brstack_take(struct brstack *b, const char *line)
{
	uint64_t from, to;

	/* A line about a gap, or about another thread: the next branch does not follow. */
	if (*line == '#')
		return brstack_break(b);
	if (!get_hex(&line, &from) || *line++ != ' ' || !get_hex(&line, &to) || *line != '\0')
		return -EBADMSG;
	return brstack_branch(b, from, to);
}

int brstack_branch(struct brstack *b, uint64_t from, uint64_t to)
{
	if (from == 0 || to == 0)
		return brstack_break(b);
	if (b->n == BRSTACK_DEPTH)
		write_stack(b);
	b->from[b->n] = from;
	b->to[b->n++] = to;
	return b->out.error;
}

int brstack_break(struct brstack *b)
{
	write_stack(b);
	return b->out.error;
}

int brstack_finish(struct brstack *b, uint64_t *ret_branches)
{
	write_stack(b);
	*ret_branches = b->total;
	return out_finish(&b->out);
}
