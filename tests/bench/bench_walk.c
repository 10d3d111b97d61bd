/*
 * Measures the bare walk: bench_walk BUNDLE [PASSES]. The bare walk follows a trace through code
 * compiled to nodes, with one dependent load for each TNT bit and nothing else: no time, gaps,
 * threads or output. No decoder that goes bit by bit can be faster; the difference to ptsnap-decode
 * is the cost of everything else.
 *
 * The bundle has one process, in 64-bit mode, whose mappings do not change. Prints an object:
 * passes (CPU seconds of each; the first also compiles), bits, tips, nodes, wrong (how often the
 * trace did not fit the code; the figures are valid only if it is 0), and packets (the time for
 * stepping over the packets only). `make bench' runs it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "proto/base.h"
#include "proto/perf/ptpacket.h"
#include "tests/bench/walk_nodes.h"

#define MAX_PASSES 1000u
/* More than the processor's 64 entries: a return address that the processor forgot comes as a TIP.
 */
#define STACK 4096u

static const uint8_t ip_sizes[8] = {0, 2, 4, 6, 6, 0, 8, 0};

struct walk {
	struct nodes nodes;
	uint32_t stack[STACK]; /* indices of calls */
	uint32_t top;
	uint64_t last_ip, bits, tips, wrong;
	uint32_t at; /* node; 0: not tracing */
	bool psb;    /* up to PSBEND */
	bool fup;    /* the next address packet does not refer to the end of the node */
};

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void enter(struct walk *w, uint32_t link)
{
	const struct node_more *m = &w->nodes.more[link >> 1];

	for (uint32_t i = 0; i < m->n_calls; i++)
		w->stack[w->top++ % STACK] = m->calls + i;
	w->at = link >> 1;
}

static uint32_t return_link(struct walk *w)
{
	struct node_call *call = &w->nodes.calls[w->stack[--w->top % STACK]];

	if (call->link == 0)
		call->link = nodes_link(&w->nodes, call->address);
	return call->link;
}

/* One TNT bit where the link says LINK_MORE. */
static uint32_t __attribute__((noinline)) go_slowly(struct walk *w, uint32_t at, unsigned bit)
{
	uint32_t link = w->nodes.nodes[at].next[bit];

	if (link == LINK_MORE) {
		switch (w->nodes.more[at].kind) {
		case NODE_COND:
			link = nodes_link(&w->nodes, w->nodes.more[at].targets[bit]);
			w->nodes.nodes[at].next[bit] = link;
			break;
		case NODE_RET:
			link = return_link(w);
			w->wrong += bit == 0;
			break;
		default: w->wrong++; return 0;
		}
	}
	enter(w, link);
	return w->at;
}

/* The N lowest BITS, the highest of them first. */
static inline void take_bits(struct walk *w, uint64_t bits, unsigned n)
{
	const struct node *nodes = w->nodes.nodes;
	uint32_t at = w->at;

	w->bits += n;
	while (n-- > 0) {
		unsigned bit = bits >> n & 1;
		uint32_t link = nodes[at].next[bit];

		at = link & LINK_MORE ? go_slowly(w, at, bit) : link >> 1;
	}
	w->at = at;
}

/* The address behind the packet's header; false: the packet has none. */
static bool take_ip(struct walk *w, const uint8_t *p, unsigned ipbytes)
{
	uint64_t ip = 0;

	if (ipbytes == 0)
		return false;
	memcpy(&ip, p + 1, ip_sizes[ipbytes]);
	switch (ipbytes) {
	case 1: ip |= w->last_ip & ~0xffffull; break;
	case 2: ip |= w->last_ip & ~0xffffffffull; break;
	case 3: ip = (uint64_t)((int64_t)(ip << 16) >> 16); break;
	case 4: ip |= w->last_ip & 0xffffull << 48; break;
	}
	w->last_ip = ip;
	return true;
}

static void take_tip(struct walk *w)
{
	uint8_t kind = w->nodes.more[w->at].kind;

	w->wrong += w->at != 0 && !w->fup && kind != NODE_RET && kind != NODE_INDIRECT;
	if (kind == NODE_RET && !w->fup)
		w->top--;
	w->tips++;
	enter(w, nodes_link(&w->nodes, w->last_ip));
	w->fup = false;
}

/* TIP, TIP.PGE, TIP.PGD, FUP. */
static size_t take_ip_packet(struct walk *w, const uint8_t *p)
{
	unsigned ipbytes = p[0] >> 5;
	bool has = take_ip(w, p, ipbytes);

	switch (p[0] & PT_OPC_IP_MASK) {
	case PT_OPC_TIP:
	case PT_OPC_TIP_PGE:
		if (has)
			take_tip(w);
		break;
	case PT_OPC_TIP_PGD:
		w->at = 0;
		w->fup = false;
		break;
	case PT_OPC_FUP:
		if (!w->psb)
			w->fup = true;
		else if (has && w->at == 0)
			enter(w, nodes_link(&w->nodes, w->last_ip));
		break;
	}
	return 1 + ip_sizes[ipbytes];
}

static size_t take_extended(struct walk *w, const uint8_t *p)
{
	uint64_t bits;

	switch (p[1]) {
	case PT_EXT_PSB:
		w->psb = true;
		w->last_ip = 0;
		return 16;
	case PT_EXT_PSBEND: w->psb = false; return 2;
	case PT_EXT_TNT64:
		bits = 0;
		memcpy(&bits, p + 2, 6);
		take_bits(w, bits, 63 - (unsigned)__builtin_clzll(bits));
		return 8;
	case PT_EXT_TMA: return 7;
	case PT_EXT_CBR: return 4;
	default: w->wrong++; return 2;
	}
}

static size_t take_other(struct walk *w, const uint8_t *p)
{
	switch (p[0]) {
	case PT_OPC_PAD: return 1;
	case PT_OPC_EXT: return take_extended(w, p);
	case PT_OPC_TSC: return 8;
	case PT_OPC_MTC:
	case PT_OPC_MODE: return 2;
	default: return take_ip_packet(w, p);
	}
}

static void walk(struct walk *w, const uint8_t *p, const uint8_t *end)
{
	w->at = w->top = 0;
	w->bits = w->tips = w->wrong = 0;
	while (p < end) {
		if (!(p[0] & 1) && p[0] > PT_OPC_EXT) {
			unsigned n = 30 - (unsigned)__builtin_clz(p[0]);

			take_bits(w, p[0] >> 1, n);
			p++;
		} else {
			p += take_other(w, p);
		}
	}
}

/* A copy with padding behind it, from the first PSB to about the last whole packet. */
static uint8_t *trace_of(const struct bundle *b, size_t *ret_size)
{
	static const uint8_t psb[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
				      0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};
	size_t size;
	const uint8_t *trace = bundle_cpu(b, 0, &size);
	const uint8_t *begin = trace ? memmem(trace, size, psb, sizeof(psb)) : NULL;
	uint8_t *copy;

	if (begin == NULL)
		return NULL;
	*ret_size = size - (size_t)(begin - trace);
	copy = calloc(1, *ret_size + 16);
	if (copy != NULL)
		memcpy(copy, begin, *ret_size);
	return copy;
}

static void bench(struct walk *w, const uint8_t *trace, size_t size, unsigned long passes)
{
	for (unsigned long i = 0; i < passes; i++) {
		double before = cpu_seconds();

		walk(w, trace, trace + size);
		printf("%s%.6f", i > 0 ? "," : "{\"passes\":[", cpu_seconds() - before);
	}
	printf("],\"bytes\":%zu,\"bits\":%" PRIu64 ",\"tips\":%" PRIu64 ",\"nodes\":%" PRIu32
	       ",\"wrong\":%" PRIu64 "}\n",
	       size, w->bits, w->tips, w->nodes.n, w->wrong);
}

int main(int argc, char **argv)
{
	int fd = argc >= 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	unsigned long passes = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
	struct bundle *b = NULL;
	struct code code = {0};
	struct walk *w = calloc(1, sizeof(*w));
	uint8_t *trace = NULL;
	size_t size = 0;

	if (fd < 0 || w == NULL || passes == 0 || passes > MAX_PASSES || bundle_open(fd, &b) != 0) {
		fprintf(stderr, "usage: bench_walk BUNDLE [PASSES]\n");
		return 2;
	}
	if (code_open(b, &code) == 0 && nodes_init(&w->nodes, &code) == 0)
		trace = trace_of(b, &size);
	if (trace != NULL)
		bench(w, trace, size, passes);
	free(trace);
	nodes_done(&w->nodes);
	code_close(&code);
	bundle_free(b);
	close(fd);
	free(w);
	return size > 0 ? 0 : 1;
}
