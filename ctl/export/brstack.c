/*
 * Branch stacks for AutoFDO and BOLT, in the lines of `perf script -F ip,brstack': an address, and
 * the branches before it, newest first. Here every branch of the trace is in exactly one stack.
 */
#include "ctl/export/export_private.h"

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

/* The fields behind the addresses: predicted or not, in a transaction, abort, cycles. The trace
 * does not tell any of these. */
static void write_stack(struct brstack *b)
{
	if (b->n == 0)
		return;
	out_block(&b->out, " ", 1);
	out_hex(&b->out, b->to[b->n - 1]);
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
	if (*line == '#') {
		write_stack(b);
		return b->out.error;
	}
	if (!get_hex(&line, &from) || *line++ != ' ' || !get_hex(&line, &to) || *line != '\0')
		return -EBADMSG;
	/* Tracing began or ended. */
	if (from == 0 || to == 0) {
		write_stack(b);
		return b->out.error;
	}
	if (b->n == BRSTACK_DEPTH)
		write_stack(b);
	b->from[b->n] = from;
	b->to[b->n++] = to;
	return b->out.error;
}

int brstack_finish(struct brstack *b, uint64_t *ret_branches)
{
	write_stack(b);
	*ret_branches = b->total;
	return out_flush(&b->out);
}
