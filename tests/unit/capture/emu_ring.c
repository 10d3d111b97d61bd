/*
 * Rings for tests of the software PMU.
 */
#include "tests/unit/capture/emu_ring.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "proto/perf/ptpacket.h"

struct emuring *emu_ring_new_machine(uint64_t config, uint32_t n_cpus)
{
	struct emuring_layout l = {.n_cpus = n_cpus,
				   .max_tasks = EMURING_MIN_TASKS,
				   .data_size = 4096,
				   .aux_size = RING_AUX};
	struct emuring *r = malloc(sizeof(*r));
	struct emuring_head *head;

	assert_non_null(r);
	assert_int_equal(emuring_layout(&l), 0);
	head = aligned_alloc(4096, l.total);
	assert_non_null(head);
	memset(head, 0, l.total);
	*head = (struct emuring_head){.magic = EMURING_MAGIC,
				      .version = EMURING_VERSION,
				      .n_cpus = n_cpus,
				      .max_tasks = l.max_tasks,
				      .data_size = 4096,
				      .aux_size = RING_AUX,
				      .cpu_stride = l.cpu_stride,
				      .cpus_at = l.cpus_at,
				      .tasks_at = l.tasks_at,
				      .quantum = 1000,
				      .clock = EMURING_CLOCK_VIRTUAL,
				      .pt_config = config,
				      .tsc_art_num = 4,
				      .tsc_art_den = 1,
				      .max_nonturbo_ratio = 10,
				      .time_mult = 1};
	assert_int_equal(emuring_check(head, l.total), 0);
	emuring_attach(r, head);
	return r;
}

struct emuring *emu_ring_new(uint64_t config)
{
	return emu_ring_new_machine(config, 1);
}

void emu_ring_free(struct emuring *r)
{
	free(r->shared);
	free(r);
}

void emu_ring_pass(struct emuring *r, uint64_t ticks)
{
	emuring_cpu_at(r, 0)->instructions += ticks;
}

struct text {
	const uint8_t *aux;
	uint64_t pos, end, last_ip;
	char out[65536];
	size_t used;
};

static void say(struct text *t, const char *format, ...)
{
	va_list args;

	if (t->used > 0)
		t->used += (size_t)snprintf(t->out + t->used, sizeof(t->out) - t->used, " ");
	va_start(args, format);
	t->used += (size_t)vsnprintf(t->out + t->used, sizeof(t->out) - t->used, format, args);
	va_end(args);
	assert_true(t->used < sizeof(t->out));
}

static uint64_t take(struct text *t, size_t n)
{
	uint64_t v = 0;

	assert_true(t->pos + n <= t->end);
	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)t->aux[(t->pos + i) % RING_AUX] << (8 * (i % 8));
	t->pos += n;
	return v;
}

static void say_tnt(struct text *t, uint64_t bits)
{
	char taken[64] = "";
	int n;

	assert_true(bits != 0); /* PAD, or no stop bit */
	n = 63 - __builtin_clzll(bits);

	for (int i = 0; i < n; i++)
		taken[i] = (bits >> (n - 1 - i) & 1) != 0 ? '1' : '0';
	say(t, "TNT(%s)", taken);
}

static void say_ip(struct text *t, uint8_t byte)
{
	static const size_t sizes[8] = {0, 2, 4, 6, 6, 0, 8, 0};
	const char *name = (byte & 0x1f) == PT_OPC_TIP	     ? "TIP"
			   : (byte & 0x1f) == PT_OPC_TIP_PGE ? "PGE"
			   : (byte & 0x1f) == PT_OPC_TIP_PGD ? "PGD"
							     : "FUP";
	size_t size = sizes[byte >> 5];
	uint64_t ip = take(t, size);

	if (size == 0) {
		say(t, "%s", name);
		return;
	}
	if (byte >> 5 == PT_IPB_SEXT48)
		ip = (uint64_t)((int64_t)(ip << 16) >> 16);
	if (size < 6)
		ip |= t->last_ip & ~((1ull << (8 * size)) - 1);
	t->last_ip = ip;
	say(t, "%s(%" PRIx64 ")", name, ip);
}

static void say_cfe(struct text *t)
{
	const uint8_t type = (uint8_t)take(t, 1), vector = (uint8_t)take(t, 1);

	say(t, "CFE%s(%d,%d)", type & PT_CFE_IP ? "IP" : "", type & 0x1f, vector);
}

static void say_extended(struct text *t)
{
	uint64_t ctc;

	switch (take(t, 1)) {
	case PT_EXT_PSB:
		take(t, PT_PSB_SIZE - 2);
		t->last_ip = 0;
		say(t, "PSB");
		break;
	case PT_EXT_PSBEND: say(t, "PSBEND"); break;
	case PT_EXT_TRACESTOP: say(t, "STOP"); break;
	case PT_EXT_CFE: say_cfe(t); break;
	case PT_EXT_EVD:
		assert_int_equal(take(t, 1), PT_EVD_CR2);
		say(t, "CR2(%" PRIx64 ")", take(t, 8));
		break;
	case PT_EXT_EXSTOP: say(t, "EXSTOP"); break;
	case PT_EXT_EXSTOP_IP: say(t, "EXSTOPIP"); break;
	case PT_EXT_PWRE: say(t, "PWRE(%" PRIx64 ")", take(t, 2)); break;
	case PT_EXT_PWRX: say(t, "PWRX(%" PRIx64 ")", take(t, 5)); break;
	case PT_EXT_TNT64: say_tnt(t, take(t, 6)); break;
	case PT_EXT_OVF:
		t->last_ip = 0;
		say(t, "OVF");
		break;
	case PT_EXT_PIP: say(t, "PIP(%" PRIx64 ")", take(t, 6) >> 1 << 5); break;
	case PT_EXT_CBR: say(t, "CBR(%d)", (int)take(t, 2)); break;
	case PT_EXT_TMA:
		ctc = take(t, 2);
		take(t, 1);
		say(t, "TMA(%" PRIu64 ",%d)", ctc, (int)take(t, 2));
		break;
	default: fail_msg("unknown extension");
	}
}

static void say_cyc(struct text *t, uint8_t byte)
{
	uint64_t v = byte >> 3, next = byte >> 2 & 1;

	for (int shift = 5; next != 0; shift += 7) {
		next = take(t, 1);
		v |= (next >> 1) << shift;
		next &= 1;
	}
	say(t, "CYC(%" PRIu64 ")", v);
}

static void say_mode(struct text *t, uint64_t bits)
{
	static const char *const modes[] = {
		[PT_MODE_EXEC_CSL] = "MODE",
		[PT_MODE_EXEC_CSD] = "MODE32",
		[PT_MODE_EXEC_CSL | PT_MODE_EXEC_IFLAG] = "MODEIF",
		[PT_MODE_TSX] = "TSX",
	};

	say(t, "%s", bits < ARRAY_SIZE(modes) && modes[bits] ? modes[bits] : "MODE?");
}

static void say_packet(struct text *t)
{
	uint8_t byte = (uint8_t)take(t, 1);

	if (byte == PT_OPC_EXT)
		say_extended(t);
	else if (byte == PT_OPC_TSC)
		say(t, "TSC(%" PRIu64 ")", take(t, PT_TSC_BYTES));
	else if (byte == PT_OPC_MTC)
		say(t, "MTC(%d)", (int)take(t, 1));
	else if (byte == PT_OPC_MODE)
		say_mode(t, take(t, 1));
	else if ((byte & 3) == PT_OPC_CYC)
		say_cyc(t, byte);
	else if ((byte & 1) == 0)
		say_tnt(t, byte >> 1);
	else
		say_ip(t, byte);
}

const char *emu_ring_text(struct emuring *r, uint64_t from)
{
	static struct text t;

	t.aux = emuring_aux_at(r, 0);
	t.pos = from;
	t.end = emuring_cpu_at(r, 0)->aux_pos;
	t.used = 0;
	t.out[0] = '\0';
	t.last_ip = 0;
	assert_true(t.end - from <= RING_AUX);
	while (t.pos < t.end)
		say_packet(&t);
	return t.out;
}
