/*
 * Decodes a bundle with libipt, for comparison with our decoder: bundle_ipt [--blocks] BUNDLE. Uses
 * libipt's instruction decoder, or its block decoder.
 *
 * Our decoder tells which thread ran. For each of our stretches, libipt decodes the same number of
 * instructions of the same CPU's trace, with that thread's code. A wrong thread means other code at
 * the same addresses, and therefore errors of libipt or other addresses. Also checked: a thread
 * begins where tracing was enabled, and libipt finds nothing behind our last stretch.
 *
 * Prints {"pid","tid","instructions","ipHash"} of libipt's results in order of tid, and at the end
 * {"stretches":N,"errors":N}: errors of libipt and differences, explained on stderr. A test
 * program: libipt is never linked into installed programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/worker/replay/replay.h"
#include "decoder/worker/view/views.h"
#include "proto/base.h"
#include "tests/oracle/ipt_cpu.h"

#define MAX_SAID 5

struct thread {
	const struct timeline_thread *who; /* NULL: unknown */
	uint64_t instructions, hash;
};

struct oracle {
	struct replay *replay;
	bool blocks;
	struct ipt_cpu **cpus;
	const struct timeline_thread **before; /* by CPU: thread of the last stretch */
	bool *begun;			       /* by CPU: the CPU has had a stretch */
	struct thread *threads;
	size_t n_threads;
	uint64_t stretches, errors;
	uint32_t context;	/* of libipt's current step */
	struct image_code code; /* the last code found in that context */
};

static size_t read_code(void *userdata, uint64_t address, uint8_t *to, size_t size)
{
	struct oracle *o = userdata;
	uint64_t at = address - o->code.address;

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
	o->threads[o->n_threads] = (struct thread){.who = who, .hash = IPT_HASH_BASIS};
	return &o->threads[o->n_threads++];
}

static void differs(struct oracle *o, const struct replay_stretch *s, const char *what)
{
	const char *why;
	uint64_t offset;

	o->errors++;
	if (o->errors > MAX_SAID)
		return;
	ipt_cpu_errors(o->cpus[s->cpu], &why, &offset);
	fprintf(stderr,
		"CPU %zu, stretch %" PRIu64 " of tid %" PRIu32
		": %s; libipt's last: %s at 0x%" PRIx64 "\n",
		s->cpu, o->stretches, s->thread ? s->thread->tid : 0, what, why, offset);
}

static uint64_t count(const struct replay_stretch *s)
{
	uint64_t n = 0;

	for (size_t i = 0; i < s->n_items; i++)
		n += s->items[i].insns;
	return n;
}

static int on_stretch(void *userdata, const struct replay_stretch *s)
{
	struct oracle *o = userdata;
	struct ipt_step step;
	struct thread *t;
	uint64_t n = count(s);
	bool other;

	if (n == 0)
		return 0;
	o->stretches++;
	o->context = s->context;
	o->code.bytes = NULL;
	other = !o->begun[s->cpu] || o->before[s->cpu] != s->thread;
	t = thread_of(o, s->thread);
	ipt_cpu_step(o->cpus[s->cpu], n, &step, &t->hash);
	t->instructions += step.instructions;
	if (step.instructions != n)
		differs(o, s, "libipt finds fewer instructions");
	else if (step.hash != views_hash(VIEWS_HASH_BASIS, s))
		differs(o, s, "libipt finds other instructions");
	else if (other && !step.entered)
		differs(o, s, "another thread, but tracing went on");
	o->begun[s->cpu] = true;
	o->before[s->cpu] = s->thread;
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
	if (o->n_threads > 0)
		qsort(o->threads, o->n_threads, sizeof(*o->threads), by_tid);
	for (size_t i = 0; i < o->n_threads; i++) {
		const struct thread *t = &o->threads[i];

		if (t->who)
			printf("{\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, t->who->pid, t->who->tid);
		else
			printf("{\"pid\":null,\"tid\":null");
		printf(",\"instructions\":%" PRIu64 ",\"ipHash\":\"%016" PRIx64 "\"}\n",
		       t->instructions, t->hash);
	}
	printf("{\"stretches\":%" PRIu64 ",\"errors\":%" PRIu64 "}\n", o->stretches, o->errors);
}

/* Instructions that libipt finds behind our last stretch have no thread. */
static void check_end(struct oracle *o, size_t cpu)
{
	const struct replay_stretch end = {.cpu = cpu};
	const char *why;
	uint64_t offset, ignored = 0;
	struct ipt_step step;

	o->context = 0;
	o->code.bytes = NULL;
	ipt_cpu_step(o->cpus[cpu], 1, &step, &ignored);
	if (step.instructions > 0)
		differs(o, &end, "libipt finds more instructions at the end");
	else if (ipt_cpu_errors(o->cpus[cpu], &why, &offset) > 0)
		differs(o, &end, "libipt found errors");
}

static int open_cpus(struct oracle *o, const struct bundle *b)
{
	const struct manifest *m = bundle_manifest(b);

	for (size_t i = 0; i < m->n_cpus; i++) {
		size_t size;
		const uint8_t *trace = bundle_cpu(b, i, &size);

		if (size == 0)
			continue;
		o->cpus[i] = ipt_cpu_new(m, trace, size, o->blocks, read_code, o);
		if (!o->cpus[i])
			return -ENOMEM;
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
		if (r == 0 && o->cpus[i])
			check_end(o, i);
		ipt_cpu_free(o->cpus[i]);
	}
	return r;
}

static int compare(const struct bundle *b, bool blocks)
{
	size_t n = bundle_manifest(b)->n_cpus;
	struct oracle o = {.blocks = blocks};
	int r = replay_new(b, NULL, &o.replay);

	o.cpus = calloc(n + 1, sizeof(struct ipt_cpu *));
	o.before = calloc(n + 1, sizeof(struct timeline_thread *));
	o.begun = calloc(n + 1, sizeof(bool));
	if (!o.cpus || !o.before || !o.begun)
		r = -ENOMEM;
	if (r == 0)
		r = decode_all(&o, b);
	if (r == 0)
		report(&o);
	free(o.threads);
	free(o.cpus);
	free(o.before);
	free(o.begun);
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
