/*
 * The walk over one small program with traces written as words (compose()), its items as words too.
 */
#include "decoder/flow/flow.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"

/* clang-format off */
static const uint8_t program[0x40] = {
	[0x00] = 0x75, 0x02,			/* 1000 jne 1004 */
	[0x02] = 0x90, 0x90,			/* 1002 nop, nop */
	[0x04] = 0xc3,				/* 1004 ret */
	[0x06] = 0x0f, 0x01, 0xc3,		/* 1006 vmresume */
	[0x10] = 0xe8, 0xeb, 0xff, 0xff, 0xff,	/* 1010 call 1000 */
	[0x15] = 0xff, 0xe0,			/* 1015 jmp *rax */
	[0x20] = 0xe8, 0x00, 0x00, 0x00, 0x00,	/* 1020 call 1025 */
	[0x25] = 0x58,				/* 1025 pop rax */
	[0x26] = 0x0f, 0x05,			/* 1026 syscall */
	[0x28] = 0xeb, 0xfe,			/* 1028 jmp 1028 */
	[0x2a] = 0x90, 0x06,			/* 102a nop, 102b no instruction */
	[0x30] = 0xff, 0xd0,			/* 1030 call *rax */
	[0x32] = 0x90,				/* 1032 nop */
	[0x33] = 0xeb, 0xcb,			/* 1033 jmp 1000 */
	[0x38] = 0x90, 0x90, 0x90, 0x90,	/* 1038 nop ... */
	[0x3c] = 0x90, 0x90, 0x90, 0x90,	/* to the end of what is mapped */
};
/* clang-format on */

struct trace {
	uint8_t bytes[4096];
	size_t n;
};

static void put(struct trace *t, const void *bytes, size_t n)
{
	memcpy(t->bytes + t->n, bytes, n);
	t->n += n;
}

/* A number of N little-endian bytes. */
static void put_number(struct trace *t, uint64_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		t->bytes[t->n++] = (uint8_t)(value >> 8 * i);
}

/* An IP packet, the whole address or none. */
static void put_ip(struct trace *t, uint8_t opcode, const char *ip)
{
	t->bytes[t->n++] = (uint8_t)(opcode | (ip != NULL ? 6 << 5 : 0));
	if (ip != NULL)
		put_number(t, strtoull(ip, NULL, 16), 8);
}

static void put_tnt(struct trace *t, const char *bits)
{
	uint8_t byte = 1;

	for (; *bits != '\0'; bits++)
		byte = (uint8_t)(byte << 1 | (*bits == '1'));
	t->bytes[t->n++] = (uint8_t)(byte << 1);
}

/* PSB+ with a FUP and MODE.Exec where there is an IP. */
static void put_psb(struct trace *t, const char *ip)
{
	for (int i = 0; i < 8; i++)
		put(t, "\x02\x82", 2);
	if (ip != NULL) {
		put(t, "\x99\x01", 2);
		put_ip(t, 0x1d, ip);
	}
	put(t, "\x02\x23", 2);
}

static void put_word(struct trace *t, const char *word, const char *arg)
{
	static const struct {
		const char *word, *bytes;
		size_t n;
	} plain[] = {
		{"pad", "\x00", 1},
		{"ovf", "\x02\xf3", 2},
		{"stop", "\x02\x83", 2},
		{"exec64", "\x99\x01", 2},
		{"exec32", "\x99\x02", 2},
		{"exec16", "\x99\x00", 2},
		{"intx", "\x99\x21", 2},
		{"commit", "\x99\x20", 2},
		{"abort", "\x99\x22", 2},
		{"bad", "\x02\x00", 2},
		{"cut", "\xcd\x00", 2},
		{"ptwip", "\x02\x92\1\2\3\4", 6},
		{"cbr", "\x02\x03\x20\x00", 4},
		{"ptw", "\x02\x12\1\2\3\4", 6},
		{"exstopip", "\x02\xe2", 2},
		{"pip", "\x02\x43\x00\x10\0\0\0\0", 8},
		{"guest", "\x02\x43\x01\x20\0\0\0\0", 8},
		{"iret", "\x02\x13\x02\x00", 4},
		{"iretip", "\x02\x13\x82\x00", 4},
		{"trig2", "\xd9\x40\x01\x02\x00", 5},
	};
	static const struct {
		const char *word;
		uint8_t opcode;
	} ips[] = {{"tip", 0x0d}, {"pge", 0x11}, {"pgd", 0x01}, {"fup", 0x1d}};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		if (strcmp(word, plain[i].word) == 0)
			put(t, plain[i].bytes, plain[i].n);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ips); i++) {
		if (strcmp(word, ips[i].word) == 0)
			put_ip(t, ips[i].opcode, arg);
	}
	if (strcmp(word, "tnt") == 0)
		put_tnt(t, arg);
	if (strcmp(word, "psb") == 0 || strcmp(word, "psb32") == 0) {
		put_psb(t, arg);
		if (strcmp(word, "psb32") == 0)
			t->bytes[t->n - 12] = 0x02;
	}
	if (strcmp(word, "tsc") == 0) {
		put(t, "\x19", 1);
		put_number(t, strtoull(arg, NULL, 16), 7);
	}
}

/* "psb=1000 tnt=10 fup=1002 pgd": packets; PSB+ where it says psb. */
static void compose(struct trace *t, const char *words)
{
	char copy[1024], *save, *word;

	t->n = 0;
	snprintf(copy, sizeof(copy), "%s", words);
	for (word = strtok_r(copy, " ", &save); word != NULL; word = strtok_r(NULL, " ", &save)) {
		size_t before = t->n;
		char *arg = strchr(word, '=');

		if (arg != NULL)
			*arg++ = '\0';
		put_word(t, word, arg);
		assert_true(t->n > before);
	}
}

static int give_code(void *userdata, uint64_t context, uint64_t ip, struct flow_code *ret)
{
	(void)context;
	(void)userdata;
	if (ip - 0x5000 < 0x1000)
		return FAULT_ANONYMOUS;
	if (ip - 0x8000 < sizeof(program)) {
		/* The same program, but read later than it ran. */
		*ret = (struct flow_code){.bytes = program,
					  .address = 0x8000,
					  .size = sizeof(program),
					  .changing = CODE_MEMORY};
		return 0;
	}
	if (ip - 0x1000 >= sizeof(program))
		return FAULT_UNMAPPED;
	*ret = (struct flow_code){.bytes = program, .address = 0x1000, .size = sizeof(program)};
	return 0;
}

static const char *const kinds[] = {"cond",    "jump", "call",	  "jump*", "call*",
				    "ret",     "far",  "syscall", "async", "enable",
				    "disable", "end",  "gap",	  "mark"};
/* By enum flow_mark_kind. */
static const char *const marks[] = {"mode", "iflag",  "tsx",   "paging", "vmcs", "ptwrite",
				    "cbr",  "exstop", "mwait", "pwre",	 "pwrx", "mnt",
				    "cfe",  "trig",   "pebs",  "off",	 "tick"};

/* "cond 1000>1004 1": kind, from, to, instructions of the run; gaps with fault, offset, bytes. */
static size_t format_item(const struct flow_item *item, const struct flow_batch *batch, char *to,
			  size_t size)
{
	const struct flow_gap *gap = &batch->gaps[item->gap];

	if (item->kind == FLOW_MARK) {
		const struct flow_mark *m = &batch->marks[item->mark];

		assert_true(item->mark < batch->n_marks && m->tsc_lo <= m->tsc_hi);
		return (size_t)snprintf(to, size, "%s %" PRIx64 "%s %" PRIx64 " %u%s, ",
					marks[m->kind], m->value,
					(m->flags & FLOW_MARK_OF_BRANCH) != 0 ? "b" : "", item->to,
					item->insns, (item->flags & FLOW_IN_TX) != 0 ? "x" : "");
	}
	if (item->kind == FLOW_GAP)
		return (size_t)snprintf(to, size, "gap %s %" PRIu64 "+%" PRIu64 " %u, ",
					fault_name(gap->fault), gap->offset, gap->bytes,
					item->insns);
	return (size_t)snprintf(to, size, "%s %" PRIx64 ">%" PRIx64 " %u%s%s%s%s, ",
				kinds[item->kind], item->from, item->to, item->insns,
				(item->flags & FLOW_COMPRESSED) != 0 ? "c" : "",
				(item->flags & FLOW_ZERO_LENGTH) != 0 ? "z" : "",
				(item->flags & FLOW_ASYNC_STOP) != 0 ? "a" : "",
				(item->flags & FLOW_IN_TX) != 0 ? "x" : "");
}

/* How many instructions of ITEM's run lie in code that was read later than it ran. */
static uint64_t count_changing(struct flow *f, const struct flow_item *item)
{
	uint64_t ips[64], n = 0;

	for (size_t i = 0; i < flow_run(f, item->start, item->insns, ips); i++)
		n += ips[i] - 0x8000 < sizeof(program);
	return n;
}

/* Runs end where they say, and their instructions lie one behind the other. */
static void check_run(struct flow *f, const struct flow_item *item)
{
	uint64_t ips[64];

	if (item->insns == 0)
		return;
	assert_int_equal(flow_run(f, item->start, item->insns, ips), item->insns);
	assert_int_equal(ips[0], item->start);
	if (item->kind <= FLOW_SYSCALL)
		assert_int_equal(ips[item->insns - 1], item->from);
}

static void decode(struct flow_config config, char *to, size_t size)
{
	struct flow_batch batch;
	uint64_t insns = 0, gaps = 0, changing = 0;
	struct flow *f;
	int r;

	if (config.code == NULL)
		config.code = give_code;
	config.mtc_period = UINT32_MAX;
	assert_int_equal(flow_new(&config, &f), 0);
	*to = '\0';
	while ((r = flow_next(f, &batch)) == 0) {
		for (size_t i = 0; i < batch.n_items; i++) {
			size_t n = format_item(&batch.items[i], &batch, to, size);

			assert_true(n < size);
			to += n;
			size -= n;
			check_run(f, &batch.items[i]);
			insns += batch.items[i].insns;
			changing += count_changing(f, &batch.items[i]);
			assert_true(batch.items[i].tsc_lo <= batch.items[i].tsc_hi);
		}
		for (size_t i = 0; i < batch.n_gaps; i++)
			gaps += batch.gaps[i].bytes;
	}
	assert_int_equal(r, FLOW_DONE);
	assert_int_equal(flow_get_stats(f)->instructions, insns);
	assert_int_equal(flow_get_stats(f)->changing[CODE_MEMORY], changing);
	assert_int_equal(flow_get_stats(f)->bytes_decoded, flow_get_stats(f)->bytes - gaps);
	flow_free(f);
}

struct example {
	const char *trace, *items;
};

static void check(const struct example *examples, size_t n, struct flow_config config)
{
	struct trace t;
	char items[4096];

	for (size_t i = 0; i < n; i++) {
		compose(&t, examples[i].trace);
		config.trace = t.bytes;
		config.size = t.n;
		decode(config, items, sizeof(items));
		if (strcmp(items, examples[i].items) != 0)
			print_message("%s\n", examples[i].trace);
		assert_string_equal(items, examples[i].items);
	}
}

#define CASE_WITH(name, config, ...)                                               \
	static void name(void **state)                                             \
	{                                                                          \
		static const struct example examples[] = {__VA_ARGS__};            \
                                                                                   \
		(void)state;                                                       \
		check(examples, ARRAY_SIZE(examples), (struct flow_config)config); \
	}
#define CASE(name, ...) CASE_WITH(name, {0}, __VA_ARGS__)
#define WITH(...)           \
	{                   \
		__VA_ARGS__ \
	}

/* clang-format off */
CASE(flow_next_branches_follow_code_and_packets,
	/* taken, not taken, target, syscall */
	{ "psb=1000 tnt=1 tip=1020 pgd",
	  "enable 0>1000 0, cond 1000>1004 1, ret 1004>1020 1, call 1020>1025 1z, syscall 1026>0 2, " },
	{ "psb=1000 tnt=0 tip=1032 tnt=0 tip=1026 pgd",
	  "enable 0>1000 0, ret 1004>1032 4, jump 1033>1000 2, ret 1004>1026 4, syscall 1026>0 1, " },
	{ "psb=1015 tip=1030 tip=1038 fup=103a pgd",
	  "enable 0>1015 0, jump* 1015>1030 1, call* 1030>1038 1, disable 103a>0 2a, " },
	/* kernel traced too: the syscall has a target */
	{ "psb=1026 tip=1038 fup=1038 pgd",
	  "enable 0>1026 0, far 1026>1038 1, disable 1038>0 0a, " })

CASE(flow_next_compressed_return_goes_to_the_call,
	{ "psb=1010 tnt=11 tip=1038 fup=1038 pgd",
	  "enable 0>1010 0, call 1010>1000 1, cond 1000>1004 1, ret 1004>1015 1c, jump* 1015>1038 1, disable 1038>0 0a, " },
	/* an indirect call is pushed too */
	{ "psb=1030 tip=1000 tnt=01 fup=1032 pgd",
	  "enable 0>1030 0, call* 1030>1000 1, ret 1004>1032 4c, disable 1032>0 0a, " },
	/* a return with a TIP pops as well: the stack is empty for the second */
	{ "psb=1030 tip=1010 tnt=1 tip=1004 tnt=1 fup=1033 pgd",
	  "enable 0>1030 0, call* 1030>1010 1, call 1010>1000 1, cond 1000>1004 1, ret 1004>1004 1, ret 1004>1032 1c, disable 1033>0 1a, " })

CASE(flow_next_zero_length_call_is_not_pushed,
	{ "psb=1020 fup=1026 tip=1004 tnt=1 pgd",
	  "enable 0>1020 0, call 1020>1025 1z, async 1026>1004 1, gap ret-empty 47+1 1, " })

CASE(flow_next_stack_lives_while_tracing_is_off,
	{ "psb=1010 fup=1000 pgd pge=1000 tnt=11 fup=1015 pgd",
	  "enable 0>1010 0, call 1010>1000 1, disable 1000>0 0a, enable 0>1000 0, cond 1000>1004 1, ret 1004>1015 1c, disable 1015>0 0a, " })

CASE(flow_next_psb_in_mid_trace_neither_loses_nor_repeats,
	{ "psb=1032 psb=1002 fup=1003 pgd",
	  "enable 0>1032 0, jump 1033>1000 2, gap event-unreachable 29+0 0, enable 0>1002 0, disable 1003>0 1a, " },
	{ "psb=1038 psb=103a psb=103a fup=103c pgd",
	  "enable 0>1038 0, disable 103c>0 4a, " },
	/* decisions before the PSB first; it empties the stack */
	{ "psb=1010 tnt=1 psb=1004 tnt=1 pgd",
	  "enable 0>1010 0, call 1010>1000 1, cond 1000>1004 1, gap ret-empty 59+1 1, " },
	{ "psb=1010 tnt=1 psb=1004 tip=1038 fup=1038 pgd",
	  "enable 0>1010 0, call 1010>1000 1, cond 1000>1004 1, ret 1004>1038 1, disable 1038>0 0a, " },
	/* tracing is off in both */
	{ "psb psb pge=1026 pgd", "enable 0>1026 0, syscall 1026>0 1, " })

CASE(flow_next_asynchronous_branches_do_not_execute_their_source,
	{ "psb=1002 fup=1002 tip=1038 fup=103f pgd pge=103f fup=103f pgd",
	  "enable 0>1002 0, async 1002>1038 0, disable 103f>0 7a, enable 0>103f 0, disable 103f>0 0a, " },
	/* at the branch itself, decisions pending: those first */
	{ "psb=1000 tnt=1 tip=1000 fup=1000 tip=1038 fup=1038 pgd",
	  "enable 0>1000 0, cond 1000>1004 1, ret 1004>1000 1, async 1000>1038 0, disable 1038>0 0a, " },
	/* a jump to nowhere, and the fault there */
	{ "psb=1015 tip=9000 fup=9000 pgd pge=1026 pgd",
	  "enable 0>1015 0, jump* 1015>9000 1, disable 9000>0 0a, enable 0>1026 0, syscall 1026>0 1, " },
	/* off at a target outside of a filter */
	{ "psb=1000 pgd=1004 pge=1015 pgd=7000 pge=1033 pgd=1000",
	  "enable 0>1000 0, disable 1000>0 1, enable 0>1015 0, disable 1015>0 1, enable 0>1033 0, disable 1033>0 1, " },
	{ "psb=1038 ptwip fup=1039 fup=103a pgd",
	  "enable 0>1038 0, disable 103a>0 2a, " })

CASE(flow_next_deferred_tip_is_taken_out_of_order,
	{ "psb=1015 tnt=01 tip=1000 tip=1033 fup=1000 pgd",
	  "enable 0>1015 0, jump* 1015>1000 1, gap ret-empty 29+10 4, enable 0>1033 0, jump 1033>1000 1, disable 1000>0 0a, " },
	{ "psb=1015 tnt=1 tip=1000 tip=1038 fup=1038 pgd",
	  "enable 0>1015 0, jump* 1015>1000 1, cond 1000>1004 1, ret 1004>1038 1, disable 1038>0 0a, " })

/* A TIP that may have been deferred: of the decisions before it some may belong behind it. */
CASE(flow_next_deferred_tip_behind_lost_decisions_is_not_resumed_at,
	{ "psb=1038 ovf tnt=1 tip=1026 pgd", "enable 0>1038 0, gap overflow 29+12 0, " },
	{ "psb=1015 tip=9000 tnt=111111 tip=1000 tnt=1 fup=1004 pgd",
	  "enable 0>1015 0, jump* 1015>9000 1, gap unmapped 38+11 0, " },
	/* the first TNT is not full and nothing but the TIP forced it out: none is deferred */
	{ "psb=1000 tnt=1 tip=1000 tnt=1 tip=9000 tnt=111111 tip=1000 tnt=1 fup=1004 pgd",
	  "enable 0>1000 0, cond 1000>1004 1, ret 1004>1000 1, cond 1000>1004 1, ret 1004>9000 1, gap unmapped 49+1 0, enable 0>1000 0, cond 1000>1004 1, disable 1004>0 0a, " })

CASE(flow_next_transactions_are_marked,
	{ "psb=1038 intx fup=1039 abort fup=103a tip=1026 pgd",
	  "enable 0>1038 0, async 103a>1026 2x, syscall 1026>0 1, " },
	{ "psb=1038 intx fup=1039 commit fup=103b fup=103b pgd",
	  "enable 0>1038 0, disable 103b>0 3a, " })

CASE(flow_next_overflow_is_a_gap,
	{ "psb=1038 ovf cbr fup=1026 pgd",
	  "enable 0>1038 0, gap overflow 29+15 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1000 tnt=1 ovf pge=1026 pgd",
	  "enable 0>1000 0, cond 1000>1004 1, gap overflow 30+2 0, enable 0>1026 0, syscall 1026>0 1, " },
	/* neither: what comes shows that tracing is on all the same */
	{ "psb=1038 ovf tnt=1 tip=1000 tnt=1 tip=1026 pgd",
	  "enable 0>1038 0, gap overflow 29+3 0, enable 0>1000 0, cond 1000>1004 1, ret 1004>1026 1, syscall 1026>0 1, " },
	{ "psb=1026 pgd ovf", "enable 0>1026 0, syscall 1026>0 1, gap overflow 30+2 0, " },
	{ "psb=1026 pgd stop", "enable 0>1026 0, syscall 1026>0 1, gap tracestop 30+2 0, " })

/* Erratum SKD010: the FUP of an interrupt, behind an OVF whose own FUP is missing, looks like the OVF's.
 * Behind the TIP it does not matter. */
CASE_WITH(flow_next_skd010_overflow_goes_on_behind_a_branch, WITH(.cpu_family = 6, .cpu_model = 0x5e),
	{ "psb=1038 ovf fup=1002 tip=1038 fup=1039 pgd",
	  "enable 0>1038 0, gap overflow 29+20 0, enable 0>1038 0, disable 1039>0 1a, " },
	{ "psb=1038 ovf fup=1002 pgd pge=1026 pgd",
	  "enable 0>1038 0, gap overflow 29+12 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1038 ovf fup=1000 tnt=1 tip=1026 pgd",
	  "enable 0>1038 0, gap overflow 29+11 0, enable 0>1000 0, cond 1000>1004 1, ret 1004>1026 1, syscall 1026>0 1, " })

CASE(flow_next_end_of_trace_counts_the_branch_it_came_to,
	{ "psb=1038", "enable 0>1038 0, end 1040>0 8, " },
	{ "psb=1002", "enable 0>1002 0, end 1004>0 3, " },
	{ "psb=1000", "enable 0>1000 0, end 1000>0 1, " },
	{ "psb=1000 tnt=0 fup=1004", "enable 0>1000 0, end 1004>0 3, " },
	{ "psb=1028", "enable 0>1028 0, jump 1028>1028 1, end 1028>0 0, " },
	{ "psb=1002 cut", "enable 0>1002 0, gap truncated 29+2 3, " })

/* A mark stands between two runs, and the instructions are those without it. */
CASE_WITH(flow_next_marks_stand_where_they_belong, WITH(.marks = true),
	{ "psb=1038 cbr fup=103a pgd",
	  "enable 0>1038 0, cbr 20 1038 0, disable 103a>0 2a, " },
	/* behind the decisions before it, not behind the straight code that follows */
	{ "psb=1000 tnt=0 cbr tip=1026 pgd",
	  "enable 0>1000 0, cbr 20 1002 1, ret 1004>1026 3, syscall 1026>0 1, " },
	{ "psb=1038 ptwip fup=1039 fup=103b pgd",
	  "enable 0>1038 0, ptwrite 4030201 103a 2, disable 103b>0 1a, " },
	{ "psb=1038 exstopip fup=1039 fup=103b pgd",
	  "enable 0>1038 0, exstop 0 1039 1, disable 103b>0 2a, " },
	/* no PTWRITE there: before the branch that needs a packet */
	{ "psb=1002 ptw tip=1026 pgd",
	  "enable 0>1002 0, ptwrite 4030201 1002 0, ret 1004>1026 3, syscall 1026>0 1, " },
	/* a FUP that the code does not lead to */
	{ "psb=1002 exstopip fup=1039 tip=1026 pgd",
	  "enable 0>1002 0, exstop 0 1002 0, ret 1004>1026 3, syscall 1026>0 1, " },
	{ "psb=1038 trig2 fup=103b pgd",
	  "enable 0>1038 0, trig 1 103a 2, disable 103b>0 1a, " },
	{ "psb=1026 iret tip=1038 fup=1038 pgd",
	  "enable 0>1026 0, far 1026>1038 1, cfe 0 1038 0, disable 1038>0 0a, " },
	{ "psb=1026 iretip fup=1026 pgd",
	  "enable 0>1026 0, syscall 1026>0 1, cfe 0b 0 0, " },
	{ "psb=1026 pip pgd pge=1038 fup=1038 pgd",
	  "enable 0>1026 0, syscall 1026>0 1, paging 10000b 0 0, enable 0>1038 0, disable 1038>0 0a, " },
	{ "psb=1038 intx fup=1039 abort fup=103a tip=1026 pgd",
	  "enable 0>1038 0, tsx 0 1039 1, tsx 2 103a 1x, async 103a>1026 0x, syscall 1026>0 1, " },
	/* between a deferred TIP and its decisions */
	{ "psb=1015 tnt=1 cbr tip=1000 tip=1038 fup=1038 pgd",
	  "enable 0>1015 0, jump* 1015>1000 1, cbr 20 1000 0, cond 1000>1004 1, ret 1004>1038 1, disable 1038>0 0a, " },
	/* within a gap they come before it */
	{ "psb=1015 tip=9000 tnt=1 cbr tip=1026 pgd",
	  "enable 0>1015 0, jump* 1015>9000 1, cbr 20 9000 0, gap unmapped 38+5 0, enable 0>1026 0, syscall 1026>0 1, " })

CASE_WITH(flow_next_ticks_are_behind_the_branch_that_shows_them, WITH(.marks = true, .ticks = true),
	{ "psb=1000 tsc=9 tnt=1 tip=1026 tsc=a pgd",
	  "enable 0>1000 0, cond 1000>1004 1, tick 0 1004 0, ret 1004>1026 1, syscall 1026>0 1, " })

CASE(flow_next_guest_code_is_a_gap,
	{ "psb=1026 guest tip=5000 tnt=1 tip=5010 pip tip=1038 fup=1039 pgd",
	  "enable 0>1026 0, far 1026>5000 1, gap guest 46+18 0, enable 0>1038 0, disable 1039>0 1a, " },
	{ "psb=1026 pgd guest pge=5000 tnt=1 pgd pip pge=1038 fup=1039 pgd",
	  "enable 0>1026 0, syscall 1026>0 1, gap guest 38+10 0, enable 0>1038 0, disable 1039>0 1a, " })

CASE_WITH(flow_next_guest_code_is_walked_where_it_is_wanted, WITH(.guests = true),
	{ "psb=1026 guest tip=1038 fup=1039 pgd",
	  "enable 0>1026 0, far 1026>1038 1, disable 1039>0 1a, " })

CASE_WITH(flow_next_resumes_at_psb_where_that_is_wanted, WITH(.resume_at_psb = true),
	{ "psb=1015 tip=9000 tip=1038 pge=1038 psb=1026 pgd",
	  "enable 0>1015 0, jump* 1015>9000 1, gap unmapped 38+18 0, enable 0>1026 0, syscall 1026>0 1, " })

CASE_WITH(flow_next_resumes_at_tip_where_that_is_wanted, WITH(.resume_at_tip = true),
	{ "psb=1000 tip=1038 fup=1039 pgd",
	  "enable 0>1000 0, gap tip-unexpected 29+0 0, enable 0>1038 0, disable 1039>0 1a, " })

CASE_WITH(flow_next_libipt_return_stack_is_kept, WITH(.retstack_libipt = true),
	/* over a PSB, and by a return with a TIP */
	{ "psb=1010 tnt=1 psb=1004 tnt=1 fup=1015 pgd",
	  "enable 0>1010 0, call 1010>1000 1, cond 1000>1004 1, ret 1004>1015 1c, disable 1015>0 0a, " },
	{ "psb=1030 tip=1004 tip=1004 tnt=1 fup=1033 pgd",
	  "enable 0>1030 0, call* 1030>1004 1, ret 1004>1004 1, ret 1004>1032 1c, disable 1033>0 1a, " })

static const struct flow_seam seams[] = {{30, FAULT_TRACE_MISSING}};

/* Nothing that was known in front of a seam holds behind it. */
CASE_WITH(flow_next_seam_is_a_gap, WITH(.seams = seams, .n_seams = ARRAY_SIZE(seams)),
	/* tracing was on */
	{ "psb=1000 tnt=1 psb=1038 fup=1039 pgd",
	  "enable 0>1000 0, cond 1000>1004 1, end 1004>0 0, gap trace-missing 30+0 0, enable 0>1038 0, disable 1039>0 1a, " },
	/* bytes in front of the next PSB */
	{ "psb=1000 tnt=1 pad pad psb=1038 fup=1039 pgd",
	  "enable 0>1000 0, cond 1000>1004 1, end 1004>0 0, gap trace-missing 30+2 0, enable 0>1038 0, disable 1039>0 1a, " },
	/* no PSB */
	{ "psb=1000 tnt=1 tnt=1 pad",
	  "enable 0>1000 0, cond 1000>1004 1, end 1004>0 0, gap trace-missing 30+2 0, " })

CASE(flow_next_psb_with_another_mode_is_a_gap,
	{ "psb=1038 psb=103a exec32 pad fup=103b pgd", "enable 0>1038 0, disable 103b>0 3a, " },
	{ "psb32=1038 psb=103a fup=103b pgd",
	  "enable 0>1038 0, gap status 29+0 2, enable 0>103a 0, disable 103b>0 1a, " })

CASE_WITH(flow_next_skd022_vm_entry_did_execute, WITH(.cpu_family = 6, .cpu_model = 0x5e),
	{ "psb=1006 fup=1006 pgd", "enable 0>1006 0, disable 1006>0 1, " })

CASE(flow_next_vm_entry_did_not_execute,
	{ "psb=1006 fup=1006 pgd", "enable 0>1006 0, disable 1006>0 0a, " })

CASE_WITH(flow_next_bdm64_abort_corrects_the_branch, WITH(.cpu_family = 6, .cpu_model = 0x3d),
	{ "psb=1000 intx fup=1000 tnt=0 abort fup=1038 tip=1026 pgd",
	  "enable 0>1000 0, cond 1000>1038 1x, async 1038>1026 0x, syscall 1026>0 1, " },
	/* it leads there */
	{ "psb=1000 intx fup=1000 tnt=0 abort fup=1003 tip=1026 pgd",
	  "enable 0>1000 0, async 1003>1026 2x, syscall 1026>0 1, " })

CASE(flow_next_branches_within_unknown_code_are_one_gap,
	{ "psb=1015 tip=5010 tip=5020 tnt=101 tip=5030 tnt=1 tip=5040 tip=1026 pgd",
	  "enable 0>1015 0, jump* 1015>5010 1, gap anonymous 38+29 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1015 tip=5010 tip=5020 psb=5020 tip=5030 tip=1026 pgd",
	  "enable 0>1015 0, jump* 1015>5010 1, gap anonymous 38+47 0, enable 0>1026 0, syscall 1026>0 1, " },
	/* another reason is another gap; code that is there and leads back begins a new one */
	{ "psb=1015 tip=5010 tip=9000 tip=9100 tip=1015 tip=5020 tip=5030 tip=1026 pgd",
	  "enable 0>1015 0, jump* 1015>5010 1, gap anonymous 38+0 0, enable 0>9000 0, gap unmapped 47+9 0, enable 0>1015 0, jump* 1015>5020 1, gap anonymous 74+9 0, enable 0>1026 0, syscall 1026>0 1, " },
	/* whose code it is behind the kernel is another question */
	{ "psb=1015 tip=9000 tip=ffffffff81000000 tip=ffffffff81000100 tip=9000 tip=1026 pgd",
	  "enable 0>1015 0, jump* 1015>9000 1, gap unmapped 38+0 0, enable 0>ffffffff81000000 0, gap unmapped 47+9 0, enable 0>9000 0, gap unmapped 65+0 0, enable 0>1026 0, syscall 1026>0 1, " },
	/* a compressed return to a call in it */
	{ "psb=1015 tip=5010 tip=1004 tnt=1 tip=5020 tip=1026 pgd",
	  "enable 0>1015 0, jump* 1015>5010 1, gap anonymous 38+0 0, enable 0>1004 0, gap anonymous 47+10 1, enable 0>1026 0, syscall 1026>0 1, " },
	/* but nothing is returned to that was called before a PSB */
	{ "psb=1015 tip=5010 tip=1000 psb=1000 tnt=1 tnt=1 tip=1026 pgd",
	  "enable 0>1015 0, jump* 1015>5010 1, gap anonymous 38+0 0, enable 0>1000 0, cond 1000>1004 1, gap ret-empty 77+1 1, enable 0>1026 0, syscall 1026>0 1, " },
	/* so does tracing that is enabled there */
	{ "psb=1015 tip=5010 tip=5020 fup=5025 pgd pge=5025 tip=5030 tip=1026 pgd",
	  "enable 0>1015 0, jump* 1015>5010 1, gap anonymous 38+9 0, enable 0>5025 0, gap anonymous 66+9 0, enable 0>1026 0, syscall 1026>0 1, " })

CASE(flow_next_code_that_changed_is_not_a_bad_trace_and_the_next_target_counts,
	{ "psb=8015 tnt=1 tnt=1 pge=1026 pgd",
	  "enable 0>8015 0, gap code-changed 29+2 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=8000 tip=1015 tip=1026 pgd",
	  "enable 0>8000 0, gap code-changed 29+0 0, enable 0>1015 0, jump* 1015>1026 1, syscall 1026>0 1, " },
	/* bytes that are no instruction */
	{ "psb=802a tnt=1 pge=1026 pgd",
	  "enable 0>802a 0, gap code-changed 29+1 1, enable 0>1026 0, syscall 1026>0 1, " },
	/* what such code led to is in doubt, too, up to the next PSB */
	{ "psb=8015 tip=1000 tip=1026 pgd",
	  "enable 0>8015 0, jump* 8015>1000 1, gap code-changed 38+0 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=8015 tip=1000 psb=1000 tip=1002 pge=1026 pgd",
	  "enable 0>8015 0, jump* 8015>1000 1, gap tip-unexpected 67+9 0, enable 0>1026 0, syscall 1026>0 1, " })

CASE(flow_next_faults_have_names_and_decoding_goes_on,
	{ "", "gap empty 0+0 0, " },
	{ "pad tnt=1 tip=1000", "gap no-psb 0+11 0, " },
	{ "tnt=1 psb=1026 pgd", "gap head 0+1 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1002 bad tnt=1 psb=1026 pgd",
	  "enable 0>1002 0, gap bad-packet 29+3 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1015 tip=9000 tnt=1 tip=1000 tnt=1 tip=1026 pgd",
	  "enable 0>1015 0, jump* 1015>9000 1, gap unmapped 38+1 0, enable 0>1000 0, cond 1000>1004 1, ret 1004>1026 1, syscall 1026>0 1, " },
	{ "psb=1015 tip=5010 tip=1026 pgd",
	  "enable 0>1015 0, jump* 1015>5010 1, gap anonymous 38+0 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=102a tnt=1 pge=1026 pgd",
	  "enable 0>102a 0, gap bad-insn 29+1 1, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1015 tnt=1 tnt=1 tip=1000 pge=1026 pgd",
	  "enable 0>1015 0, gap tnt-unexpected 29+11 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1000 tip=1002 pge=1026 pgd",
	  "enable 0>1000 0, gap tip-unexpected 29+9 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1015 tip pge=1026 pgd",
	  "enable 0>1015 0, gap tip-no-ip 29+1 1, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1010 tnt=10 pge=1026 pgd",
	  "enable 0>1010 0, call 1010>1000 1, cond 1000>1004 1, gap ret-not-taken 29+1 1, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1000 fup=1004 tip=1000 pge=1026 pgd",
	  "enable 0>1000 0, gap event-unreachable 29+18 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1028 fup=1030 pgd pge=1026 pgd",
	  "enable 0>1028 0, jump 1028>1028 1, gap loop 29+0 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1020 pgd pge=1026 pgd",
	  "enable 0>1020 0, call 1020>1025 1z, syscall 1026>0 2, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1015 tip=1002 pge=1026 pgd",
	  "enable 0>1015 0, jump* 1015>1002 1, gap packet-unexpected 38+0 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1026 pgd tnt=1 tip=1000 pge=1026 pgd",
	  "enable 0>1026 0, syscall 1026>0 1, gap packet-unexpected 30+10 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb=1026 pgd psb=1026 pgd",
	  "enable 0>1026 0, syscall 1026>0 1, gap status 30+0 0, enable 0>1026 0, syscall 1026>0 1, " },
	{ "psb exec16 pge=1000 pgd",
	  "enable 0>1000 0, disable 1000>0 1, " },
	{ "psb=1002 fup=1003 psb=1026 pgd",
	  "enable 0>1002 0, gap packet-unexpected 29+9 0, enable 0>1026 0, syscall 1026>0 1, " })

CASE(flow_next_fup_in_psb_before_enable_is_an_erratum,
	{ "psb=1026 pge=1026 pgd", "enable 0>1026 0, syscall 1026>0 1, " })
/* clang-format on */

/* Goldmont Plus has no such erratum: there the FUP means what it says. */
static void flow_next_fup_in_psb_before_enable_depends_on_the_cpu(void **state)
{
	struct flow_config config;
	struct trace t;
	char items[512];

	(void)state;
	compose(&t, "psb=1002 pge=1026 pgd");
	config = (struct flow_config){
		.trace = t.bytes, .size = t.n, .cpu_family = 6, .cpu_model = 0x5e};
	decode(config, items, sizeof(items));
	assert_string_equal(items, "enable 0>1026 0, syscall 1026>0 1, ");
	config.cpu_model = 0x7a;
	decode(config, items, sizeof(items));
	assert_string_equal(items, "enable 0>1002 0, gap packet-unexpected 29+0 0, "
				   "enable 0>1026 0, syscall 1026>0 1, ");
}

static void flow_next_32_bit_code_is_followed(void **state)
{
	struct trace t;
	char items[512];

	(void)state;
	compose(&t, "psb exec32 pge=1010 tnt=11 tip=1028 fup=1028 pgd");
	decode((struct flow_config){.trace = t.bytes, .size = t.n}, items, sizeof(items));
	assert_string_equal(items, "enable 0>1010 0, call 1010>1000 1, cond 1000>1004 1, "
				   "ret 1004>1015 1c, jump* 1015>1028 1, disable 1028>0 0a, ");
}

static void flow_next_from_tsc_skips_without_a_gap(void **state)
{
	struct flow_config config;
	struct trace t, part;
	char items[512];

	(void)state;
	compose(&t, "psb=1000 tnt=1 tip=1026 pgd");
	compose(&part, "pad");
	/* A PSB+ with TSC by hand: the composed ones have none. */
	put(&t, "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82", 16);
	put(&t, "\x19\x00\x10\x00\x00\x00\x00\x00\x02\x23", 10);
	put(&t, "\xd1\x26\x10\x00\x00\x00\x00\x00\x00\x01", 10);
	config = (struct flow_config){.trace = t.bytes, .size = t.n, .from_tsc = 0x1000};
	decode(config, items, sizeof(items));
	assert_string_equal(items, "enable 0>1026 0, syscall 1026>0 1, ");
	config.from_tsc = 0x1001;
	decode(config, items, sizeof(items));
	assert_string_equal(items, "");
}

/* Cut at its PSBs a trace gives the same runs as in one piece. */
static void flow_next_end_offset_stops_where_the_next_piece_begins(void **state)
{
	struct flow_config config;
	struct trace t;
	char items[512];

	(void)state;
	compose(&t, "psb=1038 psb=103a fup=103c pgd");
	config = (struct flow_config){.trace = t.bytes, .size = t.n, .end_offset = 29};
	decode(config, items, sizeof(items));
	assert_string_equal(items, "enable 0>1038 0, end 103a>0 2, ");
	config = (struct flow_config){.trace = t.bytes + 29, .size = t.n - 29};
	decode(config, items, sizeof(items));
	assert_string_equal(items, "enable 0>103a 0, disable 103c>0 2a, ");
}

static uint64_t context_by_ip(void *userdata, uint64_t ip, uint64_t lo, uint64_t hi)
{
	assert_true(lo <= hi);
	(*(unsigned int *)userdata)++;
	return ip == 0x1026 ? 2 : 1;
}

static void flow_next_context_change_begins_a_batch(void **state)
{
	struct flow_config config = {.code = give_code, .mtc_period = UINT32_MAX};
	struct flow_batch batch;
	unsigned int asked = 0;
	struct trace t;
	struct flow *f;

	(void)state;
	compose(&t, "psb=1000 fup=1000 pgd pge=1026 pgd pge=1000 fup=1000 pgd");
	config.trace = t.bytes;
	config.size = t.n;
	config.context = context_by_ip;
	config.userdata = &asked;
	assert_int_equal(flow_new(&config, &f), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(flow_next(f, &batch), 0);
		assert_int_equal(batch.n_items, 2);
		assert_int_equal(batch.context, i == 1 ? 2 : 1);
	}
	assert_int_equal(flow_next(f, &batch), FLOW_DONE);
	assert_int_equal(asked, 3);
	flow_free(f);
}

static struct flow *split_flow;

static uint64_t context_split_at_ip(void *userdata, uint64_t ip, uint64_t lo, uint64_t hi)
{
	(void)lo;
	(void)hi;
	(*(unsigned int *)userdata)++;
	if (ip == 0x103a)
		flow_split(split_flow);
	return 1;
}

/* The same context on both sides, and not one stretch. */
static void flow_split_begins_a_batch_where_the_context_stays(void **state)
{
	struct flow_config config = {.code = give_code, .mtc_period = UINT32_MAX};
	struct flow_batch batch;
	unsigned int asked = 0;
	size_t n_items[4], n = 0;
	struct trace t;

	(void)state;
	compose(&t, "psb=1038 psb=103a fup=103c pgd");
	config.trace = t.bytes;
	config.size = t.n;
	config.context = context_split_at_ip;
	config.userdata = &asked;
	assert_int_equal(flow_new(&config, &split_flow), 0);
	while (flow_next(split_flow, &batch) == 0) {
		assert_true(n < 4);
		assert_int_equal(batch.context, 1);
		n_items[n++] = batch.n_items;
	}
	assert_int_equal(n, 2);
	assert_int_equal(n_items[0], 1);
	assert_int_equal(n_items[1], 1);
	flow_free(split_flow);
}

static void flow_next_times_enclose_their_packets(void **state)
{
	struct flow_config config = {.code = give_code, .mtc_period = UINT32_MAX};
	static const uint64_t times[][2] = {
		{0, 0x100},	/* enable at the PSB */
		{0x100, 0x200}, /* cond: behind the PSB's TSC, before the one behind its TNT */
		{0x200, 0x300}, /* ret: what stands behind a TSC happened later */
		{0x300, UINT64_MAX},
	};
	struct flow_batch batch;
	struct trace t;
	struct flow *f;

	(void)state;
	compose(&t, "psb=1000 tsc=100 tnt=1 tsc=200 tip=1026 tsc=300 pgd");
	config.trace = t.bytes;
	config.size = t.n;
	assert_int_equal(flow_new(&config, &f), 0);
	assert_int_equal(flow_next(f, &batch), 0);
	assert_int_equal(batch.n_items, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(batch.items[i].tsc_lo, times[i][0]);
		assert_int_equal(batch.items[i].tsc_hi, times[i][1]);
	}
	assert_int_equal(flow_get_stats(f)->tsc_first, 0x100);
	assert_int_equal(flow_get_stats(f)->tsc_last, 0x300);
	flow_free(f);
}

/* A direct branch may have executed before a packet that belongs to no place: a CPU that is halted
 * behind the branch writes a CBR when it wakes up. */
static void flow_next_packet_without_place_does_not_date_what_follows(void **state)
{
	struct flow_config config = {.code = give_code, .mtc_period = UINT32_MAX};
	struct flow_batch batch;
	struct trace t;
	struct flow *f;

	(void)state;
	compose(&t, "psb=1030 tsc=100 tip=1032 tsc=200 cbr fup=1000 pgd");
	config.trace = t.bytes;
	config.size = t.n;
	assert_int_equal(flow_new(&config, &f), 0);
	assert_int_equal(flow_next(f, &batch), 0);
	assert_int_equal(batch.n_items, 4); /* enable, call, jump, disable */
	assert_int_equal(batch.items[2].kind, FLOW_JUMP);
	assert_int_equal(batch.items[2].tsc_lo, 0x100);
	assert_int_equal(batch.items[2].tsc_hi, UINT64_MAX);
	assert_int_equal(batch.items[3].tsc_lo, 0x200);
	flow_free(f);
}

static void flow_next_cut_trace_claims_nothing_behind_its_last_packet(void **state)
{
	struct flow_config config = {.cut = true};
	struct trace t;
	char items[1024];

	(void)state;
	compose(&t, "psb=1000 tnt=1");
	config.trace = t.bytes;
	config.size = t.n;
	decode(config, items, sizeof(items));
	assert_string_equal(items, "enable 0>1000 0, cond 1000>1004 1, end 1004>0 0, ");
	/* Not even a direct jump. */
	compose(&t, "psb=1028");
	config.size = t.n;
	decode(config, items, sizeof(items));
	assert_string_equal(items, "enable 0>1028 0, end 1028>0 0, ");
}

static void flow_next_many_items_come_in_batches(void **state)
{
	static uint8_t bytes[29 + 20000];
	struct flow_config config = {.trace = bytes, .size = sizeof(bytes), .code = give_code};
	struct flow_batch batch;
	struct trace t;
	struct flow *f;
	size_t items = 0, batches = 0;

	(void)state;
	/* ret with a TIP to itself, two bytes of address. */
	compose(&t, "psb=1004");
	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, t.bytes, t.n);
	for (size_t i = t.n; i + 3 <= sizeof(bytes); i += 3)
		memcpy(bytes + i, "\x2d\x04\x10", 3);
	assert_int_equal(flow_new(&config, &f), 0);
	while (flow_next(f, &batch) == 0) {
		items += batch.n_items;
		batches++;
	}
	assert_int_equal(items, 1 + 20000 / 3 + 1);
	assert_true(batches > 1);
	assert_int_equal(flow_get_stats(f)->branches, 20000 / 3 + 1 /* enabled */);
	flow_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flow_next_branches_follow_code_and_packets),
		cmocka_unit_test(flow_next_compressed_return_goes_to_the_call),
		cmocka_unit_test(flow_next_zero_length_call_is_not_pushed),
		cmocka_unit_test(flow_next_stack_lives_while_tracing_is_off),
		cmocka_unit_test(flow_next_psb_in_mid_trace_neither_loses_nor_repeats),
		cmocka_unit_test(flow_next_asynchronous_branches_do_not_execute_their_source),
		cmocka_unit_test(flow_next_deferred_tip_is_taken_out_of_order),
		cmocka_unit_test(flow_next_deferred_tip_behind_lost_decisions_is_not_resumed_at),
		cmocka_unit_test(flow_next_transactions_are_marked),
		cmocka_unit_test(flow_next_overflow_is_a_gap),
		cmocka_unit_test(flow_next_skd010_overflow_goes_on_behind_a_branch),
		cmocka_unit_test(flow_next_end_of_trace_counts_the_branch_it_came_to),
		cmocka_unit_test(flow_next_branches_within_unknown_code_are_one_gap),
		cmocka_unit_test(
			flow_next_code_that_changed_is_not_a_bad_trace_and_the_next_target_counts),
		cmocka_unit_test(flow_next_faults_have_names_and_decoding_goes_on),
		cmocka_unit_test(flow_next_fup_in_psb_before_enable_is_an_erratum),
		cmocka_unit_test(flow_next_fup_in_psb_before_enable_depends_on_the_cpu),
		cmocka_unit_test(flow_next_32_bit_code_is_followed),
		cmocka_unit_test(flow_next_marks_stand_where_they_belong),
		cmocka_unit_test(flow_next_ticks_are_behind_the_branch_that_shows_them),
		cmocka_unit_test(flow_next_guest_code_is_a_gap),
		cmocka_unit_test(flow_next_guest_code_is_walked_where_it_is_wanted),
		cmocka_unit_test(flow_next_resumes_at_psb_where_that_is_wanted),
		cmocka_unit_test(flow_next_resumes_at_tip_where_that_is_wanted),
		cmocka_unit_test(flow_next_libipt_return_stack_is_kept),
		cmocka_unit_test(flow_next_seam_is_a_gap),
		cmocka_unit_test(flow_next_psb_with_another_mode_is_a_gap),
		cmocka_unit_test(flow_next_skd022_vm_entry_did_execute),
		cmocka_unit_test(flow_next_vm_entry_did_not_execute),
		cmocka_unit_test(flow_next_bdm64_abort_corrects_the_branch),
		cmocka_unit_test(flow_next_from_tsc_skips_without_a_gap),
		cmocka_unit_test(flow_next_end_offset_stops_where_the_next_piece_begins),
		cmocka_unit_test(flow_next_context_change_begins_a_batch),
		cmocka_unit_test(flow_split_begins_a_batch_where_the_context_stays),
		cmocka_unit_test(flow_next_times_enclose_their_packets),
		cmocka_unit_test(flow_next_packet_without_place_does_not_date_what_follows),
		cmocka_unit_test(flow_next_cut_trace_claims_nothing_behind_its_last_packet),
		cmocka_unit_test(flow_next_many_items_come_in_batches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
