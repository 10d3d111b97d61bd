/*
 * Decodes a bundle with libipt, for comparison with our decoder: bundle_ipt [--blocks] BUNDLE. Uses
 * libipt's instruction decoder, or its block decoder.
 *
 * Our decoder tells which thread ran. libipt decodes each CPU's trace with that thread's code, and
 * must find the same instructions. A wrong thread means other code at the same addresses, and
 * therefore errors of libipt or other addresses. Where the kernel patches itself, libipt gets the
 * text as of our time. Also checked: a thread begins where tracing was enabled or in the kernel,
 * and libipt finds nothing behind our last instruction.
 *
 * Where libipt cannot go on it is lost up to a later PSB. Two reasons are no errors: a gap of ours,
 * by the fault's name; and "return-stack", a compressed return that libipt sends elsewhere, because
 * its return stack pops at compressed returns only (docs/DIFFERENCES.md).
 *
 * Prints {"pid","tid","instructions","ipHash"} of libipt's results in order of tid, and at the end
 * {"stretches":N,"errors":N,"uncertainVersions":N,"equal":N,"lost":{REASON:{"times":N,
 * "instructions":N}}}: errors of libipt and differences, explained on stderr; reads of kernel code
 * of which two versions are possible; instructions that are equal; and those of ours for which
 * libipt was lost. A test program: libipt is never linked into installed programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/worker/replay/replay_private.h"
#include "decoder/worker/view/views.h"
#include "proto/base.h"
#include "tests/oracle/ipt_cpu.h"

#define MAX_SAID 5

struct thread {
	const struct timeline_thread *who; /* NULL: unknown */
	uint64_t instructions, hash;
};

/* Why libipt is lost: a fault of ours, or one of these. */
enum { LOST_RETURN = 256, LOST_ERROR, LOST_REASONS };

struct cpu {
	struct ipt_cpu *ipt;
	const struct timeline_thread *before; /* thread of the last stretch */
	bool begun;			      /* the CPU has had a stretch */
	bool compressed;		      /* the last instruction was a compressed return */
	bool kernel;			      /* ... was the kernel's */
	uint64_t end;			      /* of the last item, at the earliest (TSC) */
	/* libipt is lost for this reason, up to the code at IP that is executing at offset PSB. */
	bool lost;
	unsigned int reason;
	uint64_t psb, ip;
	/* Meanwhile: the instructions since the last packet before PSB, which lies at OFFSET. */
	uint64_t *ips, offset;
	size_t n, capacity;
};

struct oracle {
	struct replay *replay;
	bool blocks;
	struct cpu *cpus;
	struct thread *threads;
	size_t n_threads;
	uint64_t stretches, errors, equal;
	uint64_t lost[LOST_REASONS], lost_insns[LOST_REASONS];
	uint32_t context;	/* of libipt's current step */
	struct image_code code; /* the last code found in that context */
	size_t cpu;		/* of libipt's current step; executed from LO to HI (TSC) */
	uint64_t lo, hi;
	uint64_t *ends;	   /* by CPU: the last item, at the earliest (TSC) */
	uint64_t versions; /* reads of kernel code of which the time leaves two versions */
};

/* Up to where the version changes. */
static size_t read_version(struct oracle *o, uint64_t address, uint8_t *to, size_t size)
{
	struct flow_code code;
	uint32_t last, version = replay_kernel_version(o->replay, &o->replay->clocks[o->cpu],
						       address, o->lo, o->hi, &last);
	uint64_t at;

	o->versions += last != version;
	if (replay_kernel_code(o->replay, address, version, &code) != 0)
		return 0;
	at = address - code.address;
	size = MIN_OF(size, (size_t)(code.size - at));
	memcpy(to, code.bytes + at, size);
	return size;
}

static size_t read_kernel(struct oracle *o, uint64_t address, uint8_t *to, size_t size)
{
	size_t n = 0, more = 1;

	for (; n < size && more > 0; n += more)
		more = read_version(o, address + n, to + n, size - n);
	return n;
}

static size_t read_code(void *userdata, uint64_t address, uint8_t *to, size_t size)
{
	struct oracle *o = userdata;
	uint64_t at = address - o->code.address;

	if (replay_is_kernel(o->replay, address))
		return read_kernel(o, address, to, size);
	if (o->code.bytes == NULL || address < o->code.address || at >= o->code.size) {
		if (replay_find(o->replay, o->context, address, &o->code) != 0) {
			o->code.bytes = NULL;
			return 0;
		}
		at = address - o->code.address;
	}
	size = MIN_OF(size, (size_t)(o->code.size - at));
	memcpy(to, o->code.bytes + at, size);
	return size;
}

static struct thread *thread_of(struct oracle *o, const struct timeline_thread *who)
{
	for (size_t i = 0; i < o->n_threads; i++)
		if (o->threads[i].who == who)
			return &o->threads[i];
	o->threads = realloc(o->threads, (o->n_threads + 1) * sizeof(*o->threads));
	if (o->threads == NULL)
		abort();
	o->threads[o->n_threads] = (struct thread){.who = who, .hash = VIEWS_HASH_BASIS};
	return &o->threads[o->n_threads++];
}

/* The stretch that is compared. */
struct at {
	struct oracle *o;
	struct cpu *cpu;
	const struct replay_stretch *s;
	const struct flow_item *item;
	struct thread *thread;
	bool first; /* nothing of the stretch was compared yet, and the thread is another one */
};

static void differs(struct at *at, uint64_t ip, const char *what)
{
	const char *why;
	uint64_t offset;

	if (at->o->errors++ >= MAX_SAID)
		return;
	ipt_cpu_errors(at->cpu->ipt, &why, &offset);
	fprintf(stderr,
		"CPU %zu, stretch %" PRIu64 " of tid %" PRIu32 ", before 0x%" PRIx64
		": %s; libipt's last: %s at 0x%" PRIx64 "\n",
		at->s->cpu, at->o->stretches, at->s->thread ? at->s->thread->tid : 0, ip, what, why,
		offset);
}

/* Has libipt go on at a PSB at or behind offset FROM. */
static void lose(struct at *at, unsigned int reason, uint64_t from)
{
	struct cpu *c = at->cpu;

	at->o->lost[reason]++;
	c->lost = true;
	c->reason = reason;
	c->n = 0;
	c->offset = 0;
	if (!ipt_cpu_sync(c->ipt, from, &c->psb, &c->ip))
		c->psb = UINT64_MAX;
}

/* Compares our instruction at IP. */
static void compare_one(struct at *at, uint64_t ip)
{
	const bool compressed = at->cpu->compressed;
	struct oracle *o = at->o;
	uint64_t theirs = 0;
	bool entered;
	int r = ipt_cpu_next(at->cpu->ipt, &theirs, &entered);

	at->cpu->compressed = false;
	if (r != 1 || theirs != ip) {
		if (!compressed)
			differs(at, ip,
				r == 1	 ? "libipt finds another instruction"
				: r == 0 ? "libipt finds fewer instructions"
					 : "libipt finds an error");
		lose(at, compressed ? LOST_RETURN : LOST_ERROR, at->item->offset + 1);
		o->lost_insns[at->cpu->reason]++;
		return;
	}
	o->equal++;
	at->thread->instructions++;
	at->thread->hash = hash_u64(at->thread->hash, ip);
	if (at->first && !entered && !at->cpu->kernel && !replay_is_kernel(o->replay, ip))
		differs(at, ip, "another thread, but tracing went on");
	at->cpu->kernel = replay_is_kernel(o->replay, ip);
	at->first = false;
}

/* The first packet behind the PSB was used: the PSB lies within the instructions since the last
 * packet before it. */
static void find_again(struct at *at)
{
	struct cpu *c = at->cpu;
	size_t i = c->n, n = c->n;

	while (i > 0 && c->ips[i - 1] != c->ip)
		i--;
	if (i == 0) {
		at->o->lost_insns[c->reason] += c->n;
		at->o->lost[c->reason]--; /* the same loss goes on */
		lose(at, c->reason, c->psb + 1);
		return;
	}
	at->o->lost_insns[c->reason] += i - 1;
	c->lost = false;
	c->n = 0;
	for (size_t k = i - 1; k < n; k++) {
		if (c->lost)
			at->o->lost_insns[c->reason]++;
		else
			compare_one(at, c->ips[k]);
	}
}

static void take_ips(void *userdata, const uint64_t *ips, size_t n)
{
	struct at *at = userdata;
	struct cpu *c = at->cpu;

	for (size_t i = 0; i < n; i++) {
		if (!c->lost) {
			compare_one(at, ips[i]);
		} else {
			if (ARRAY_RESERVE(c->ips, c->capacity, c->n + 1) < 0)
				abort();
			c->ips[c->n++] = ips[i];
		}
	}
}

/* A PSB in a gap of ours is of no use: we may go on far behind it, in a loop that passes its IP. */
static void meet_gap(struct at *at, const struct flow_gap *gap)
{
	struct cpu *c = at->cpu;
	const uint64_t end = gap->offset + gap->bytes;

	if (!c->lost && c->begun) {
		lose(at, (unsigned int)gap->fault & 0xff, end);
	} else if (c->lost && c->psb < end) {
		at->o->lost_insns[c->reason] += c->n;
		at->o->lost[c->reason]--; /* the same loss goes on */
		lose(at, c->reason, end);
	}
}

static bool follow_item(struct at *at)
{
	const struct flow_item *item = at->item;
	struct cpu *c = at->cpu;

	/* The packets before the PSB decided the code up to the PSB. */
	if (c->lost && item->offset < c->psb && item->offset > c->offset) {
		at->o->lost_insns[c->reason] += c->n;
		c->n = 0;
		c->offset = item->offset;
	}
	at->o->lo = c->end;
	at->o->hi = item->tsc_hi;
	if (!views_each_run(at->s, item, take_ips, at))
		return false;
	if (c->lost && item->offset >= c->psb && item->insns > 0)
		find_again(at);
	c->end = MAX_OF(c->end, item->tsc_lo);
	if (item->insns > 0)
		c->compressed = item->kind == FLOW_RET && (item->flags & FLOW_COMPRESSED);
	if (item->kind == FLOW_GAP)
		meet_gap(at, &at->s->gaps[item->gap - at->s->first_gap]);
	return true;
}

static int on_stretch(void *userdata, const struct replay_stretch *s)
{
	struct oracle *o = userdata;
	struct cpu *c = &o->cpus[s->cpu];
	struct at at = {
		o, c, s, NULL, thread_of(o, s->thread), !c->begun || c->before != s->thread};
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_items; i++)
		n += s->items[i].insns;
	o->stretches += n > 0;
	c->begun |= n > 0;
	o->cpu = s->cpu;
	o->context = s->context;
	o->code.bytes = NULL;
	for (size_t i = 0; i < s->n_items; i++) {
		at.item = &s->items[i];
		if (!follow_item(&at))
			return -ENOMEM;
	}
	if (n > 0)
		c->before = s->thread;
	return 0;
}

static int by_tid(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;
	uint32_t xt = x->who ? x->who->tid : 0, yt = y->who ? y->who->tid : 0;

	return xt < yt ? -1 : xt > yt;
}

static void report(struct oracle *o)
{
	const char *comma = "";

	if (o->n_threads > 0)
		qsort(o->threads, o->n_threads, sizeof(*o->threads), by_tid);
	for (size_t i = 0; i < o->n_threads; i++) {
		const struct thread *t = &o->threads[i];

		if (t->instructions == 0)
			continue;
		if (t->who)
			printf("{\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, t->who->pid, t->who->tid);
		else
			printf("{\"pid\":null,\"tid\":null");
		printf(",\"instructions\":%" PRIu64 ",\"ipHash\":\"%016" PRIx64 "\"}\n",
		       t->instructions, t->hash);
	}
	printf("{\"stretches\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"uncertainVersions\":%" PRIu64
	       ",\"equal\":%" PRIu64 ",\"lost\":{",
	       o->stretches, o->errors, o->versions, o->equal);
	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		if (o->lost[i] == 0)
			continue;
		printf("%s\"%s\":{\"times\":%" PRIu64 ",\"instructions\":%" PRIu64 "}", comma,
		       i == LOST_RETURN	 ? "return-stack"
		       : i == LOST_ERROR ? "difference"
					 : fault_name((enum fault)i),
		       o->lost[i], o->lost_insns[i]);
		comma = ",";
	}
	puts("}}");
}

/* Instructions that libipt finds behind our last stretch have no thread. */
static void check_end(struct oracle *o, size_t cpu)
{
	const struct replay_stretch end = {.cpu = cpu};
	struct at at = {.o = o, .cpu = &o->cpus[cpu], .s = &end};
	uint64_t ip;
	bool entered;

	o->cpu = cpu;
	o->context = 0;
	o->code.bytes = NULL;
	o->lo = at.cpu->end;
	o->hi = UINT64_MAX;
	if (at.cpu->lost)
		o->lost_insns[at.cpu->reason] += at.cpu->n;
	else if (ipt_cpu_next(at.cpu->ipt, &ip, &entered) > 0)
		differs(&at, ip, "libipt finds more instructions at the end");
}

static int open_cpus(struct oracle *o, const struct bundle *b)
{
	const struct manifest *m = bundle_manifest(b);

	for (size_t i = 0; i < m->n_cpus; i++) {
		size_t size;
		const uint8_t *trace = bundle_cpu(b, i, &size);
		uint64_t ignored;

		if (size == 0)
			continue;
		o->cpus[i].ipt = ipt_cpu_new(m, trace, size, o->blocks, read_code, o);
		if (!o->cpus[i].ipt)
			return -ENOMEM;
		ipt_cpu_begin(o->cpus[i].ipt, &ignored);
	}
	return 0;
}

/* Stretches come in the order in which threads had the CPUs. */
static int decode_all(struct oracle *o, const struct bundle *b)
{
	const struct replay_consumer consumer = {.stretch = on_stretch, .userdata = o};
	size_t n = bundle_manifest(b)->n_cpus;
	int r = open_cpus(o, b);

	if (r == 0)
		r = replay_all(o->replay, &consumer);
	for (size_t i = 0; i < n; i++) {
		if (r == 0 && o->cpus[i].ipt)
			check_end(o, i);
		ipt_cpu_free(o->cpus[i].ipt);
		free(o->cpus[i].ips);
	}
	return r;
}

static int compare(const struct bundle *b, bool blocks)
{
	size_t n = bundle_manifest(b)->n_cpus;
	struct oracle o = {.blocks = blocks};
	int r = replay_new(b, NULL, &o.replay);

	o.cpus = calloc(n + 1, sizeof(*o.cpus));
	if (!o.cpus)
		r = -ENOMEM;
	if (r == 0)
		r = decode_all(&o, b);
	if (r == 0)
		report(&o);
	free(o.threads);
	free(o.cpus);
	replay_free(o.replay);
	return r;
}

int main(int argc, char **argv)
{
	struct bundle *b = NULL;
	bool blocks = argc == 3 && strcmp(argv[1], "--blocks") == 0;
	int fd = argc == 2 || blocks ? open(argv[argc - 1], O_RDONLY | O_CLOEXEC) : -1, r;

	if (fd < 0 || bundle_open(fd, &b) != 0) {
		fprintf(stderr, "usage: bundle_ipt [--blocks] BUNDLE\n");
		return 2;
	}
	r = compare(b, blocks);
	if (r != 0)
		fprintf(stderr, "%s: %s\n", argv[argc - 1], strerror(-r));
	bundle_free(b);
	close(fd);
	return r == 0 ? 0 : 1;
}
