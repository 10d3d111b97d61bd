/*
 * The event reader: packets as text (tests/support/ptscript.h), and their events as words.
 */
#include "decoder/packet/event.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proto/base.h"
#include "tests/support/ptscript.h"

static const char *const kinds[] = {"none",  "tnt",	  "tip", "enable", "disable",
				    "async", "async-off", "psb", "status", "mark",
				    "ovf",   "stop",	  "bad", "end"};
static const char *const marks[] = {"mode", "iflag",  "tsx",   "paging", "vmcs", "ptw",
				    "cbr",  "exstop", "mwait", "pwre",	 "pwrx", "mnt",
				    "cfe",  "trig",   "pebs",  "off",	 "tick"};
static const char *const binds[] = {"", "<", ">", "@cr3", "@vmcs", "@ptw", "+"};

/* Writes kind, bind, mark, value and from ("mark<ptw 1234 1000 "), or "async 1000>2000 ". */
static void format(const struct event_reader *r, const struct event *e, char *to, size_t size)
{
	const struct flow_mark *m = event_mark(r, e);
	size_t n = strlen(to);

	n += (size_t)snprintf(to + n, size - n, "%s", kinds[e->kind]);
	if (e->kind == EVENT_MARK)
		n += (size_t)snprintf(to + n, size - n, "%s %s %" PRIx64 "%s", binds[e->bind],
				      marks[m->kind], m->value,
				      (m->flags & FLOW_MARK_OF_BRANCH) != 0 ? "b" : "");
	if (e->kind == EVENT_BAD || e->fault != FAULT_NONE)
		n += (size_t)snprintf(to + n, size - n, " %s", fault_name(e->fault));
	if (e->has_from)
		n += (size_t)snprintf(to + n, size - n, " %" PRIx64, e->from);
	if (e->has_to)
		n += (size_t)snprintf(to + n, size - n, ">%" PRIx64, e->to);
	snprintf(to + n, size - n, "%s%s%s, ", e->in_tx ? "x" : "", e->guest ? "g" : "",
		 e->abort ? "a" : "");
}

struct example {
	const char *trace, *events;
};

static void read_all(const struct example *x, struct errata errata, char *to, size_t size)
{
	struct event_reader r;
	struct ptscript s;
	struct event e;
	char text[2048];

	snprintf(text, sizeof(text), "trace:\npsb\nmode.exec(64)\n%s\n", x->trace);
	*to = '\0';
	if (ptscript_parse(&s, x->trace, text) != 0 || ptscript_trace(&s) != 0)
		fail_msg("%s", s.error);
	event_reader_init(&r, s.trace.data, s.trace.size, 0, s.trace.size, errata);
	do {
		event_next(&r, &e);
		assert_true(e.offset <= e.last && e.last <= e.end && e.end <= s.trace.size);
		format(&r, &e, to, size);
	} while (e.kind != EVENT_END);
	ptscript_done(&s);
}

static void check(const struct example *examples, size_t n, struct errata errata)
{
	char events[2048];

	for (size_t i = 0; i < n; i++) {
		read_all(&examples[i], errata, events, sizeof(events));
		if (strcmp(events, examples[i].events) != 0)
			print_message("%s\n", examples[i].trace);
		assert_string_equal(events, examples[i].events);
	}
}

#define CASE(name, has, ...)                                               \
	static void name(void **state)                                     \
	{                                                                  \
		static const struct example examples[] = {__VA_ARGS__};    \
		(void)state;                                               \
		check(examples, ARRAY_SIZE(examples), (struct errata)has); \
	}

#define ON  "fup(6: 0x1000)\npsbend\n"
#define OFF "psbend\n"

/* clang-format off */
CASE(event_next_branches_are_events, {0},
	{ ON "tnt(!.)\ntip(6: 0x2000)\ntip.pgd\n", "psb 1000, tnt, tip>2000, disable, end, " },
	{ OFF "tip.pge(6: 0x2000)\ntip.pgd(6: 0x3000)\nstop\n",
	  "psb, enable>2000, disable>3000, stop, end, " },
	{ ON "fup(6: 0x1001)\npip(0x5000)\ntip(6: 0x2000)\n",
	  "psb 1000, async 1001>2000, mark paging 5000, end, " },
	{ ON "fup(6: 0x1001)\nmtc(1)\ntip.pgd\n", "psb 1000, async-off 1001, end, " },
	{ ON "fup(6: 0x1001)\ntnt(!)\n", "psb 1000, bad packet-unexpected, tnt, end, " },
	{ ON "fup(6: 0x1001)\n", "psb 1000, end 1001, " })

CASE(event_next_mode_is_a_mark_where_it_changes, {0},
	{ ON "mode.exec(32)\ntip(6: 0x2000)\n", "psb 1000, tip>2000, mark mode 1, end, " },
	{ ON "mode.exec(64, if)\nfup(6: 0x1002)\n", "psb 1000, status 1002, mark iflag 1, end, " },
	{ ON "mode.exec(64)\nfup(6: 0x1002)\n", "psb 1000, status 1002, end, " },
	/* STI, and later a branch */
	{ ON "mode.exec(64, if)\nfup(6: 0x1002)\ntip(6: 0x2000)\n",
	  "psb 1000, status 1002, mark iflag 1, tip>2000, end, " },
	{ OFF "ovf\nfup(6: 0x1001)\nmode.exec(64, if)\nfup(6: 0x1002)\ntip(6: 0x2000)\n",
	  "psb, ovf>1001, status 1002, mark mode 0, mark iflag 1, tip>2000, end, " },
	{ ON "mode.exec(32)\nfup(6: 0x1002)\ntip(6: 0x2000)\n",
	  "psb 1000, async 1002>2000, mark mode 1, end, " },
	{ OFF "mode.exec(64)\ntip.pge(6: 0x2000)\n", "psb, enable>2000, end, " },
	{ OFF "ovf\nmode.exec(64)\ntip.pge(6: 0x2000)\n",
	  "psb, ovf, enable>2000, mark mode 0, mark iflag 0, end, " })

CASE(event_next_transactions_bind_to_their_fup, {0},
	{ ON "mode.tsx(begin)\nfup(6: 0x1001)\nmode.tsx(commit)\nfup(6: 0x1005)\n",
	  "psb 1000, mark< tsx 0 1001x, status 1001x, mark< tsx 1 1005, status 1005, end, " },
	{ ON "mode.tsx(begin)\nfup(6: 0x1001)\nmode.tsx(abort)\nfup(6: 0x1005)\ntip(6: 0x2000)\n",
	  "psb 1000, mark< tsx 0 1001x, status 1001x, mark< tsx 2 1005, async 1005>2000a, end, " },
	{ OFF "mode.tsx(begin)\ntip.pge(6: 0x1000)\n", "psb, mark tsx 0x, enable>1000x, endx, " },
	{ ON "mode.tsx(commit)\nfup(6: 0x1001)\n", "psb 1000, status 1001, end, " })

CASE(event_next_ptwrite_is_behind_its_instruction, {0},
	{ ON "ptw(4: 0x12)\nptw(8: 0x34)\n", "psb 1000, mark@ptw ptw 12, mark@ptw ptw 34, end, " },
	{ ON "ptw(4: 0x12, ip)\nfup(6: 0x1001)\ntnt(!)\n", "psb 1000, mark> ptw 12 1001, tnt, end, " },
	/* The FUP of the PTW is missing. */
	{ ON "ptw(4: 0x12, ip)\ntnt(!)\n", "psb 1000, mark ptw 12, tnt, end, " })

CASE(event_next_power_events_share_a_fup, {0},
	{ ON "mwait(7, 0)\npwre(c1.0)\nexstop(ip)\nfup(6: 0x1001)\npwrx(int: c1, c1)\n",
	  "psb 1000, mark< mwait 7 1001, mark< exstop 0 1001, mark pwre 0, mark pwrx 100, end, " },
	{ OFF "mwait(7, 0)\npwre(c1.0)\novf\n", "psb, mark mwait 7, mark pwre 0, ovf, end, " },
	{ OFF "mwait(7, 0)\npwre(c1.0)\nexstop\n", "psb, mark mwait 7, mark exstop 0, mark pwre 0, end, " })

CASE(event_next_cfe_takes_its_evds_and_its_branch, {0},
	{ ON "evd(cr2, 0xf00)\ncfe(intr, 14)\nfup(6: 0x1001)\ntip(6: 0x2000)\n",
	  "psb 1000, mark< cfe e 1001, async 1001>2000, end, " },
	{ ON "cfe(iret)\ntip(6: 0x2000)\n", "psb 1000, tip>2000, mark cfe 0, end, " },
	{ ON "cfe(iret)\ntip.pgd\n", "psb 1000, disable, mark cfe 0b, end, " },
	{ OFF "cfe(intr, 3)\ntip.pge(6: 0x2000)\n", "psb, mark cfe 3, enable>2000, end, " },
	{ ON "cfe(iret, ip)\nfup(6: 0x1001)\ntip.pgd\n", "psb 1000, mark> cfe 0 1001, disable, end, " },
	{ ON "cfe(smi, ip)\nfup(6: 0x1001)\n", "psb 1000, mark< cfe 0 1001, end, " },
	{ ON "evd(cr2, 1)\nevd(vmxq, 1)\n", "psb 1000, bad packet-unexpected, end, " },
	{ ON "evd(cr2, 1)\ncfe(iret)\ntip(6: 0x2000)\n",
	  "psb 1000, bad packet-unexpected, tip>2000, mark cfe 0, end, " })

CASE(event_next_virtual_machines_are_told_apart, {0},
	{ ON "pip(0xa000, nr)\nvmcs(0xb000)\ntip(6: 0x2000)\npip(0xc000)\ntip(6: 0x1003)\n",
	  "psb 1000, mark@cr3 paging a000g, mark@vmcs vmcs b000g, tip>2000g, "
	  "mark@cr3 paging c000, tip>1003, end, " },
	{ ON "cfe(vmentry)\ntip.pgd\ncfe(vmexit)\ntip.pge(6: 0x1003)\n",
	  "psb 1000, disableg, mark cfe 0bg, mark cfe 0, enable>1003, end, " })

CASE(event_next_trigger_counts_or_names_its_place, {0},
	{ ON "trig(0x1a)\n", "psb 1000, mark trig 1a, end, " },
	{ ON "trig(0x1a, icnt: 3)\n", "psb 1000, mark+ trig 1a, end, " },
	{ ON "trig(0x1a, ip)\nfup(6: 0x1001)\n", "psb 1000, mark< trig 1a 1001, end, " })

CASE(event_next_pebs_items_are_marks, {0},
	{ ON "bbp(4, 8)\nbip(1, 0x55)\nbep(ip)\nfup(6: 0x1001)\ntnt(!)\n",
	  "psb 1000, mark pebs 55, tnt, end, " })

CASE(event_next_psb_tells_what_changed, {0},
	{ "cbr(8)\npip(0xa000)\nvmcs(0xb000)\n" ON "cbr(9)\npsb\ncbr(9)\npip(0xa000)\nvmcs(0xb000)\npsbend\n",
	  "psb 1000, mark cbr 8, mark paging a000, mark vmcs b000, mark cbr 9, psb, end, " },
	{ ON "psb\nmode.exec(32)\npsbend\n", "psb 1000, psb, end, " },
	{ "tnt(!)\n", "bad packet-unexpected, tnt, end, " },
	{ "bytes(02 00)\n" OFF, "bad bad-packet, end, " })

CASE(event_next_overflow_takes_its_fup, {0},
	{ OFF "ovf\ncbr(7)\nfup(6: 0x1001)\n", "psb, mark cbr 7, ovf>1001, end, " },
	{ OFF "ovf\nmtc(1)\ntip.pge(6: 0x1001)\n", "psb, ovf, enable>1001, end, " },
	{ "fup(6: 0x1000)\novf\nfup(6: 0x1001)\n", "psb 1000, ovf>1001, end, " })

/* The FUP may be that of an interrupt, because the OVF's is missing: nothing says which. */
CASE(event_next_skd010_overflow_goes_on_behind_a_branch, {.skd010 = true},
	{ OFF "ovf\ncbr(7)\nfup(6: 0x1001)\ntip(6: 0x2000)\n", "psb, mark cbr 7, ovf>2000, end, " },
	{ OFF "ovf\nfup(6: 0x1001)\nmode.exec(64)\ntip(6: 0x2000)\n", "psb, mark mode 0, mark iflag 0, ovf>2000, end, " },
	{ OFF "ovf\nfup(6: 0x1001)\ntip.pgd(6: 0x2000)\n", "psb, ovf, end, " },
	{ OFF "ovf\nfup(6: 0x1001)\ntnt(!)\ntip(6: 0x2000)\n", "psb, ovf>1001, tnt, tip>2000, end, " })

CASE(event_next_bdm70_fup_before_enable_is_none, {.bdm70 = true},
	{ ON "cbr(1)\ntip.pge(6: 0x1000)\n", "psb, mark cbr 1, enable>1000, end, " },
	{ ON "tnt(!)\ntip.pge(6: 0x1000)\n", "psb 1000, tnt, enable>1000, end, " })

CASE(event_next_apl12_fup_while_off_is_none, {.apl12 = true},
	{ OFF "ovf\nfup(6: 0x1001)\ntip.pge(6: 0x2000)\n", "psb, ovf, enable>2000, end, " },
	{ OFF "ovf\nfup(6: 0x1001)\npsb\npsbend\n", "psb, ovf, psb, end, " },
	{ OFF "ovf\nfup(6: 0x1001)\ntnt(!)\n", "psb, ovf>1001, tnt, end, " })

CASE(event_next_skd007_cyc_that_ate_an_ovf_is_an_ovf, {.skd007 = true},
	{ OFF "bytes(f7 02 f3)\nfup(6: 0x1001)\n", "psb, ovf>1001, end, " },
	{ OFF "bytes(f7 02 23)\ntip.pge(6: 0x1001)\n", "psb, enable>1001, end, " })

CASE(event_next_skz84_broken_tma_is_skipped, {.skz84 = true},
	{ ON "bytes(02 73 01 01 01 01 00 00)\ntnt(!)\n", "psb 1000, tnt, end, " })
/* clang-format on */

static void event_next_unknown_opcode_is_skipped_to_the_psb(void **state)
{
	const struct example x = {ON "bytes(02 73 01 01 01 01 00 00)\ntnt(!)\n"
				     "psb\nfup(6: 0x1000)\npsbend\n",
				  "psb 1000, bad bad-packet, psb 1000, end, "};

	(void)state;
	check(&x, 1, (struct errata){0});
}

/* There are more marks than the reader can keep waiting. None is lost; only their order is. */
static void event_next_many_waiting_marks_are_given(void **state)
{
	char trace[1024] = ON, events[2048] = "psb 1000, ", got[2048];
	const struct example x = {trace, events};

	(void)state;
	for (int i = 0; i < 20; i++) {
		snprintf(trace + strlen(trace), sizeof(trace) - strlen(trace), "pwre(c1.0)\n");
		snprintf(events + strlen(events), sizeof(events) - strlen(events), "mark pwre 0, ");
	}
	snprintf(events + strlen(events), sizeof(events) - strlen(events), "end, ");
	read_all(&x, (struct errata){0}, got, sizeof(got));
	assert_string_equal(got, events);
}

static void errata_for_models_and_unknown_ones(void **state)
{
	const char *names[ERRATA_N];
	struct errata e = errata_for(6, 0x5e);

	(void)state;
	assert_int_equal(errata_list(&e, names), 6);
	assert_string_equal(names[0], "BDM70");
	assert_string_equal(names[5], "SKL168");
	e = errata_for(6, 0x5c);
	assert_true(e.apl11 && e.apl12 && !e.bdm70);
	e = errata_for(19, 1);
	assert_true(e.skz84 && e.skd022 && !e.apl11);
	e = errata_for(15, 0x5e);
	assert_int_equal(errata_list(&e, names), 0);
	assert_false(errata_known(15, 0x5e));
	assert_true(errata_known(6, 0x3d));
	/* An unknown CPU has only errata whose remedy cannot harm. */
	e = errata_for(0, 0);
	assert_int_equal(errata_list(&e, names), 2);
	assert_false(e.bdm64 || e.skd010 || e.skd007 || e.skz84 || e.apl12 || e.skd022);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(event_next_branches_are_events),
		cmocka_unit_test(event_next_mode_is_a_mark_where_it_changes),
		cmocka_unit_test(event_next_transactions_bind_to_their_fup),
		cmocka_unit_test(event_next_ptwrite_is_behind_its_instruction),
		cmocka_unit_test(event_next_power_events_share_a_fup),
		cmocka_unit_test(event_next_cfe_takes_its_evds_and_its_branch),
		cmocka_unit_test(event_next_virtual_machines_are_told_apart),
		cmocka_unit_test(event_next_trigger_counts_or_names_its_place),
		cmocka_unit_test(event_next_pebs_items_are_marks),
		cmocka_unit_test(event_next_psb_tells_what_changed),
		cmocka_unit_test(event_next_overflow_takes_its_fup),
		cmocka_unit_test(event_next_skd010_overflow_goes_on_behind_a_branch),
		cmocka_unit_test(event_next_bdm70_fup_before_enable_is_none),
		cmocka_unit_test(event_next_apl12_fup_while_off_is_none),
		cmocka_unit_test(event_next_skd007_cyc_that_ate_an_ovf_is_an_ovf),
		cmocka_unit_test(event_next_skz84_broken_tma_is_skipped),
		cmocka_unit_test(event_next_unknown_opcode_is_skipped_to_the_psb),
		cmocka_unit_test(event_next_many_waiting_marks_are_given),
		cmocka_unit_test(errata_for_models_and_unknown_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
