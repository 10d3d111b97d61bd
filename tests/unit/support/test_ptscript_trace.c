/*
 * The trace section of a script against the decoder, each way.
 */
#include "tests/support/ptscript.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "decoder/packet/packet.h"

#define MAIN UINT64_C(0x401000)

/* SCRIPT of one trace, with the label main. */
static int encode(struct ptscript *s, const char *trace)
{
	char text[65536];
	int r;

	snprintf(text, sizeof(text), "trace:\n%s\n", trace);
	r = ptscript_parse(s, "t.pts", text);
	if (r == 0)
		r = ptscript_add_label(s, "main", MAIN);
	return r == 0 ? ptscript_trace(s) : r;
}

/* Every field that the decoder keeps of a packet. */
static bool same_ip(const struct packet *a, const struct packet *b)
{
	return a->u.ip.raw == b->u.ip.raw && a->u.ip.bytes == b->u.ip.bytes;
}

static bool same_fields(const struct packet *a, const struct packet *b)
{
	switch (a->type) {
	case PACKET_TNT: return a->u.tnt.n == b->u.tnt.n && a->u.tnt.bits == b->u.tnt.bits;
	case PACKET_TIP:
	case PACKET_TIP_PGE:
	case PACKET_TIP_PGD:
	case PACKET_FUP: return same_ip(a, b);
	case PACKET_PIP: return a->u.pip.cr3 == b->u.pip.cr3 && a->u.pip.nr == b->u.pip.nr;
	case PACKET_MODE_EXEC:
	case PACKET_MODE_TSX: return a->u.mode.bits == b->u.mode.bits;
	case PACKET_CBR: return a->u.cbr.ratio == b->u.cbr.ratio;
	case PACKET_MTC: return a->u.mtc.ctc == b->u.mtc.ctc;
	case PACKET_TMA: return a->u.tma.ctc == b->u.tma.ctc && a->u.tma.fc == b->u.tma.fc;
	case PACKET_TSC:
	case PACKET_CYC:
	case PACKET_VMCS:
	case PACKET_MNT:
	case PACKET_MWAIT:
	case PACKET_PWRE:
	case PACKET_PWRX: return a->u.tsc.value == b->u.tsc.value;
	case PACKET_PTW:
		return a->u.ptw.payload == b->u.ptw.payload && a->u.ptw.bytes == b->u.ptw.bytes &&
		       a->u.ptw.ip == b->u.ptw.ip;
	case PACKET_EXSTOP:
	case PACKET_BEP: return a->u.exstop.ip == b->u.exstop.ip;
	case PACKET_BBP: return a->u.bbp.type == b->u.bbp.type && a->u.bbp.bytes == b->u.bbp.bytes;
	case PACKET_BIP:
		return a->u.bip.payload == b->u.bip.payload && a->u.bip.id == b->u.bip.id &&
		       a->u.bip.bytes == b->u.bip.bytes;
	case PACKET_CFE:
		return a->u.cfe.type == b->u.cfe.type && a->u.cfe.vector == b->u.cfe.vector &&
		       a->u.cfe.ip == b->u.cfe.ip;
	case PACKET_EVD: return a->u.evd.type == b->u.evd.type && a->u.evd.value == b->u.evd.value;
	case PACKET_TRIG:
		return a->u.trig.ip == b->u.trig.ip && a->u.trig.mult == b->u.trig.mult &&
		       a->u.trig.has_icnt == b->u.trig.has_icnt &&
		       a->u.trig.icnt == b->u.trig.icnt && a->u.trig.trbv == b->u.trig.trbv;
	default: return true;
	}
}

static bool same(const struct packet *a, const struct packet *b)
{
	return a->type == b->type && a->size == b->size && same_fields(a, b);
}

struct good {
	const char *line;
	struct packet p;
};

/* clang-format off */
static const struct good goods[] = {
	{"pad", {PACKET_PAD, 1, {}}},
	{"psb()", {PACKET_PSB, 16, {}}},
	{"  psbend # remark", {PACKET_PSBEND, 2, {}}},
	{"here: ovf", {PACKET_OVF, 2, {}}},
	{"stop", {PACKET_TRACESTOP, 2, {}}},
	{"tnt(!)", {PACKET_TNT, 1, {.tnt = {1, 1}}}},
	{"tnt(.)", {PACKET_TNT, 1, {.tnt = {0, 1}}}},
	{"tnt(!. .!!.)", {PACKET_TNT, 1, {.tnt = {0x26, 6}}}},
	{"tnt64(!)", {PACKET_TNT, 8, {.tnt = {1, 1}}}},
	{"tnt64(!.............................................!)",
	 {PACKET_TNT, 8, {.tnt = {UINT64_C(0x400000000001), 47}}}},
	{"tip(3: main+0x10)", {PACKET_TIP, 7, {.ip = {MAIN + 0x10, 3}}}},
	{"tip.pge(1: main + 2)", {PACKET_TIP_PGE, 3, {.ip = {0x1002, 1}}}},
	{"tip.pgd(2: main-1)", {PACKET_TIP_PGD, 5, {.ip = {0x400fff, 2}}}},
	{"fup(4: 0x123456789abc)", {PACKET_FUP, 7, {.ip = {UINT64_C(0x123456789abc), 4}}}},
	{"fup(6: 0xffffffff81000000)", {PACKET_FUP, 9, {.ip = {UINT64_C(0xffffffff81000000), 6}}}},
	{"tip(3: 0xffffffff81000008)", {PACKET_TIP, 7, {.ip = {UINT64_C(0xffff81000008), 3}}}},
	{"tip(0xffffffff81000010)", {PACKET_TIP, 3, {.ip = {0x10, 1}}}},
	{"tip(0xffffffff82000010)", {PACKET_TIP, 5, {.ip = {0x82000010, 2}}}},
	{"tip(main)", {PACKET_TIP, 7, {.ip = {MAIN, 3}}}},
	{"tip(2: raw 0x12345678)", {PACKET_TIP, 5, {.ip = {0x12345678, 2}}}},
	{"tip.pgd", {PACKET_TIP_PGD, 1, {.ip = {0, 0}}}},
	{"tip()", {PACKET_TIP, 1, {.ip = {0, 0}}}},
	{"pip(0xfffffffffffe0)", {PACKET_PIP, 8, {.pip = {UINT64_C(0xfffffffffffe0), 0}}}},
	{"pip(0x1ee700020, nr)", {PACKET_PIP, 8, {.pip = {UINT64_C(0x1ee700020), 1}}}},
	{"mode.exec(16)", {PACKET_MODE_EXEC, 2, {.mode = {0}}}},
	{"mode.exec(32)", {PACKET_MODE_EXEC, 2, {.mode = {2}}}},
	{"mode.exec(64, if)", {PACKET_MODE_EXEC, 2, {.mode = {5}}}},
	{"mode.tsx(begin)", {PACKET_MODE_TSX, 2, {.mode = {1}}}},
	{"mode.tsx(commit)", {PACKET_MODE_TSX, 2, {.mode = {0}}}},
	{"mode.tsx(abort)", {PACKET_MODE_TSX, 2, {.mode = {2}}}},
	{"cbr(0x2a)", {PACKET_CBR, 4, {.cbr = {0x2a}}}},
	{"tsc(0xf1f2f3f4f5f6f7)", {PACKET_TSC, 8, {.tsc = {UINT64_C(0xf1f2f3f4f5f6f7)}}}},
	{"mtc(255)", {PACKET_MTC, 2, {.mtc = {255}}}},
	{"tma(0xfedc, 0x1ab)", {PACKET_TMA, 7, {.tma = {0xfedc, 0x1ab}}}},
	{"cyc(0)", {PACKET_CYC, 1, {.cyc = {0}}}},
	{"cyc(31)", {PACKET_CYC, 1, {.cyc = {31}}}},
	{"cyc(32)", {PACKET_CYC, 2, {.cyc = {32}}}},
	{"cyc(4095)", {PACKET_CYC, 2, {.cyc = {4095}}}},
	{"cyc(4096)", {PACKET_CYC, 3, {.cyc = {4096}}}},
	{"cyc(0xffffffffffffffff)", {PACKET_CYC, 10, {.cyc = {UINT64_MAX}}}},
	{"vmcs(0xabcdef0123000)", {PACKET_VMCS, 7, {.vmcs = {UINT64_C(0xabcdef0123000)}}}},
	{"mnt(0x8877665544332211)", {PACKET_MNT, 11, {.mnt = {UINT64_C(0x8877665544332211)}}}},
	{"ptw(4: 0x12345678)", {PACKET_PTW, 6, {.ptw = {0x12345678, 4, 0}}}},
	{"ptw(8: main, ip)", {PACKET_PTW, 10, {.ptw = {MAIN, 8, 1}}}},
	{"exstop", {PACKET_EXSTOP, 2, {.exstop = {0}}}},
	{"exstop(ip)", {PACKET_EXSTOP, 2, {.exstop = {1}}}},
	{"mwait(0x50, 1)", {PACKET_MWAIT, 10, {.mwait = {UINT64_C(0x100000050)}}}},
	{"pwre(c6.2)", {PACKET_PWRE, 4, {.pwre = {0x5200}}}},
	{"pwre(c0, hw)", {PACKET_PWRE, 4, {.pwre = {0xf080}}}},
	{"pwrx(int: c1, c6)", {PACKET_PWRX, 7, {.pwrx = {0x105}}}},
	{"pwrx(store: c2, c3)", {PACKET_PWRX, 7, {.pwrx = {0x412}}}},
	{"pwrx(hw: c0, c0)", {PACKET_PWRX, 7, {.pwrx = {0x8ff}}}},
	{"bbp(1, 4)", {PACKET_BBP, 3, {.bbp = {1, 4}}}},
	{"bip(2, 0xfffffffe)", {PACKET_BIP, 5, {.bip = {0xfffffffe, 2, 4}}}},
	{"bep", {PACKET_BEP, 2, {.bep = {0}}}},
	{"bbp(4, 8)", {PACKET_BBP, 3, {.bbp = {4, 8}}}},
	{"bip(31, 0x8877665544332211)",
	 {PACKET_BIP, 9, {.bip = {UINT64_C(0x8877665544332211), 31, 8}}}},
	{"bep(ip)", {PACKET_BEP, 2, {.bep = {1}}}},
	{"cfe(intr, 14, ip)", {PACKET_CFE, 4, {.cfe = {1, 1, 14}}}},
	{"cfe(iret)", {PACKET_CFE, 4, {.cfe = {2, 0, 0}}}},
	{"cfe(vmexit, ip)", {PACKET_CFE, 4, {.cfe = {8, 1, 0}}}},
	{"cfe(0x1f, 0xff)", {PACKET_CFE, 4, {.cfe = {0x1f, 0, 0xff}}}},
	{"evd(cr2, 0xf00baa)", {PACKET_EVD, 11, {.evd = {0xf00baa, 0}}}},
	{"evd(vmxr, 0x8877665544332211)",
	 {PACKET_EVD, 11, {.evd = {UINT64_C(0x8877665544332211), 2}}}},
	{"trig(0x1a)", {PACKET_TRIG, 3, {.trig = {0, 0x1a, 0, 0, 0}}}},
	{"trig(0xa1, ip, mult, icnt: 0x1234)",
	 {PACKET_TRIG, 5, {.trig = {0x1234, 0xa1, 1, 1, 1}}}},
	{"bytes(06)", {PACKET_TNT, 1, {.tnt = {1, 1}}}},
	{"bytes(02 F3)", {PACKET_OVF, 2, {}}},
};
/* clang-format on */

static void trace_every_packet_is_what_the_decoder_reads(void **state)
{
	char text[8192] = "", line[512];
	struct packet_cursor c;
	struct ptscript s;

	(void)state;
	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		strcat(text, goods[i].line);
		strcat(text, "\n");
	}
	if (encode(&s, text) != 0)
		fail_msg("%s", s.error);
	c = (struct packet_cursor){.pos = s.trace.data, .end = s.trace.data + s.trace.size};
	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		struct packet p;

		assert_int_equal(packet_next(&c, &p), 0);
		packet_format(&p, 0, line, sizeof(line));
		if (!same(&p, &goods[i].p))
			fail_msg("%s: read as %s", goods[i].line, line);
	}
	assert_ptr_equal(c.pos, c.end);
	ptscript_done(&s);
}

/* Numbers that are the same everywhere: xorshift64. */
static uint64_t seed;

static uint64_t any(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

static uint64_t any_of(uint64_t n)
{
	return any() % n;
}

/* Small ones as often as big ones. */
static uint64_t any_bits(unsigned max)
{
	return any() >> (64 - 1 - any_of(max));
}

static void any_branches(struct packet *p, char *text, uint8_t max)
{
	p->u.tnt.n = (uint8_t)(1 + any_of(max));
	p->u.tnt.bits = any() & ((UINT64_C(1) << p->u.tnt.n) - 1);
	for (unsigned i = p->u.tnt.n; i > 0; i--)
		*text++ = (p->u.tnt.bits >> (i - 1) & 1) != 0 ? '!' : '.';
	*text = '\0';
}

static void any_tnt(struct packet *p, char *line, size_t size)
{
	bool big = any_of(2) == 1;
	char branches[64];

	any_branches(p, branches, big ? 47 : 6);
	p->size = big ? 8 : 1;
	snprintf(line, size, "%s(%s)", big ? "tnt64" : "tnt", branches);
}

static const char *const ip_names[] = {"tip", "tip.pge", "tip.pgd", "fup"};

static void any_ip(struct packet *p, char *line, size_t size)
{
	static const uint8_t forms[] = {0, 1, 2, 3, 4, 6}, sizes[] = {0, 16, 32, 48, 48, 64};
	const char *name = ip_names[p->type - PACKET_TIP];
	size_t form = any_of(6);

	p->u.ip.bytes = forms[form];
	p->u.ip.raw = form == 0 ? 0 : any_bits(sizes[form]);
	p->size = (uint8_t)(1 + sizes[form] / 8);
	if (form == 0)
		snprintf(line, size, "%s", name);
	else
		snprintf(line, size, "%s(%u: raw 0x%" PRIx64 ")", name, forms[form], p->u.ip.raw);
}

static const char *maybe(uint8_t *flag, const char *word)
{
	*flag = (uint8_t)any_of(2);
	return *flag != 0 ? word : "";
}

static void any_mode(struct packet *p, char *line, size_t size)
{
	static const char *const modes[] = {"16", "64", "32"}, *const tsx[] = {"commit", "begin",
									       "abort"};
	size_t i = any_of(3);
	uint8_t iflag = 0;

	p->size = 2;
	if (p->type == PACKET_MODE_TSX)
		snprintf(line, size, "mode.tsx(%s)", tsx[i]);
	else
		snprintf(line, size, "mode.exec(%s%s)", modes[i], maybe(&iflag, ", if"));
	p->u.mode.bits = (uint8_t)(i | (size_t)iflag << 2);
}

/* NAME(NUMBER) with as many bits. */
static void any_number(struct packet *p, char *line, size_t size)
{
	static const struct {
		const char *name;
		uint8_t bits, shift, size;
	} kinds[PACKET_TRIG + 1] = {
		[PACKET_TSC] = {"tsc", 56, 0, 8},
		[PACKET_VMCS] = {"vmcs", 40, 12, 7},
		[PACKET_MNT] = {"mnt", 64, 0, 11},
	};
	p->u.tsc.value = any_bits(kinds[p->type].bits) << kinds[p->type].shift;
	p->size = kinds[p->type].size;
	snprintf(line, size, "%s(0x%" PRIx64 ")", kinds[p->type].name, p->u.tsc.value);
}

static void any_cyc(struct packet *p, char *line, size_t size)
{
	p->size = 1;
	p->u.cyc.value = any_bits(64);
	for (uint64_t rest = p->u.cyc.value >> 5; rest != 0; rest >>= 7)
		p->size++;
	snprintf(line, size, "cyc(%" PRIu64 ")", p->u.cyc.value);
}

static void any_small(struct packet *p, char *line, size_t size)
{
	if (p->type == PACKET_CBR) {
		p->size = 4;
		p->u.cbr.ratio = (uint8_t)any();
		snprintf(line, size, "cbr(%u)", p->u.cbr.ratio);
	} else if (p->type == PACKET_MTC) {
		p->size = 2;
		p->u.mtc.ctc = (uint8_t)any();
		snprintf(line, size, "mtc(0x%x)", p->u.mtc.ctc);
	} else {
		p->size = 7;
		p->u.tma.ctc = (uint16_t)any();
		p->u.tma.fc = (uint16_t)any_of(512);
		snprintf(line, size, "tma(0x%x, %u)", p->u.tma.ctc, p->u.tma.fc);
	}
}

static void any_pip(struct packet *p, char *line, size_t size)
{
	p->size = 8;
	p->u.pip.cr3 = any_bits(47) << 5;
	snprintf(line, size, "pip(0x%" PRIx64 "%s)", p->u.pip.cr3, maybe(&p->u.pip.nr, ", nr"));
}

static void any_ptw(struct packet *p, char *line, size_t size)
{
	p->u.ptw.bytes = any_of(2) == 1 ? 8 : 4;
	p->size = (uint8_t)(2 + p->u.ptw.bytes);
	p->u.ptw.payload = any_bits(p->u.ptw.bytes * 8u);
	snprintf(line, size, "ptw(%u: 0x%" PRIx64 "%s)", p->u.ptw.bytes, p->u.ptw.payload,
		 maybe(&p->u.ptw.ip, ", ip"));
}

static void any_power(struct packet *p, char *line, size_t size)
{
	static const char *const why[] = {"int", "store", "hw"};
	static const uint8_t bits[] = {1, 4, 8};
	unsigned a = (unsigned)any_of(16), b = (unsigned)any_of(16), i = (unsigned)any_of(3);
	uint8_t hw;

	if (p->type == PACKET_MWAIT) {
		p->size = 10;
		p->u.mwait.value = a | (uint64_t)(b & 3) << 32;
		snprintf(line, size, "mwait(%u, %u)", a, b & 3);
	} else if (p->type == PACKET_PWRE) {
		p->size = 4;
		snprintf(line, size, "pwre(c%u.%u%s)", a, b, maybe(&hw, ", hw"));
		p->u.pwre.value = ((a - 1) & 15) << 12 | b << 8 | (hw != 0 ? 0x80u : 0u);
	} else {
		p->size = 7;
		snprintf(line, size, "pwrx(%s: c%u, c%u)", why[i], a, b);
		p->u.pwrx.value = ((a - 1) & 15) << 4 | ((b - 1) & 15) | (unsigned)bits[i] << 8;
	}
}

static void any_event(struct packet *p, char *line, size_t size)
{
	if (p->type == PACKET_CFE) {
		p->size = 4;
		p->u.cfe.type = (uint8_t)any_of(32);
		p->u.cfe.vector = (uint8_t)any();
		snprintf(line, size, "cfe(%u, %u%s)", p->u.cfe.type, p->u.cfe.vector,
			 maybe(&p->u.cfe.ip, ", ip"));
	} else {
		p->size = 11;
		p->u.evd.type = (uint8_t)any_of(64);
		p->u.evd.value = any_bits(64);
		snprintf(line, size, "evd(%u, 0x%" PRIx64 ")", p->u.evd.type, p->u.evd.value);
	}
}

static void any_trig(struct packet *p, char *line, size_t size)
{
	char icnt[32] = "";
	uint8_t ip, mult, has;

	p->u.trig.trbv = (uint8_t)any();
	if (*maybe(&has, "x") != '\0') {
		p->u.trig.icnt = (uint16_t)any();
		snprintf(icnt, sizeof(icnt), ", icnt: %u", p->u.trig.icnt);
	}
	snprintf(line, size, "trig(%u%s%s%s)", p->u.trig.trbv, icnt, maybe(&ip, ", ip"),
		 maybe(&mult, ", mult"));
	p->u.trig.ip = ip != 0;
	p->u.trig.mult = mult != 0;
	p->u.trig.has_icnt = has != 0;
	p->size = has != 0 ? 5 : 3;
}

static void any_plain(struct packet *p, char *line, size_t size)
{
	static const struct {
		const char *name;
		uint8_t size;
	} kinds[PACKET_TRIG + 1] = {
		[PACKET_PAD] = {"pad", 1},	 [PACKET_PSB] = {"psb", 16},
		[PACKET_PSBEND] = {"psbend", 2}, [PACKET_TRACESTOP] = {"stop", 2},
		[PACKET_OVF] = {"ovf", 2},
	};
	p->size = kinds[p->type].size;
	snprintf(line, size, "%s", kinds[p->type].name);
}

/* A block: its beginning, an item or its end; LAST: the one before, or NULL. */
static void any_block(struct packet *p, char *line, size_t size)
{
	static uint8_t item;

	if (p->type == PACKET_BBP) {
		p->size = 3;
		p->u.bbp.type = (uint8_t)any_of(32);
		item = p->u.bbp.bytes = any_of(2) == 1 ? 8 : 4;
		snprintf(line, size, "bbp(%u, %u)", p->u.bbp.type, item);
	} else if (p->type == PACKET_BIP) {
		p->size = (uint8_t)(1 + item);
		p->u.bip.id = (uint8_t)any_of(32);
		p->u.bip.bytes = item;
		p->u.bip.payload = any_bits(item * 8u);
		snprintf(line, size, "bip(%u, %" PRIu64 ")", p->u.bip.id, p->u.bip.payload);
	} else {
		p->size = 2;
		snprintf(line, size, "%s%s", p->type == PACKET_BEP ? "bep" : "exstop",
			 maybe(&p->u.bep.ip, "(ip)"));
	}
}

static void any_packet(struct packet *p, char *line, size_t size)
{
	switch (p->type) {
	case PACKET_TNT: any_tnt(p, line, size); break;
	case PACKET_TIP:
	case PACKET_TIP_PGE:
	case PACKET_TIP_PGD:
	case PACKET_FUP: any_ip(p, line, size); break;
	case PACKET_PIP: any_pip(p, line, size); break;
	case PACKET_MODE_EXEC:
	case PACKET_MODE_TSX: any_mode(p, line, size); break;
	case PACKET_CBR:
	case PACKET_MTC:
	case PACKET_TMA: any_small(p, line, size); break;
	case PACKET_TSC:
	case PACKET_VMCS:
	case PACKET_MNT: any_number(p, line, size); break;
	case PACKET_CYC: any_cyc(p, line, size); break;
	case PACKET_PTW: any_ptw(p, line, size); break;
	case PACKET_MWAIT:
	case PACKET_PWRE:
	case PACKET_PWRX: any_power(p, line, size); break;
	case PACKET_EXSTOP:
	case PACKET_BBP:
	case PACKET_BIP:
	case PACKET_BEP: any_block(p, line, size); break;
	case PACKET_CFE:
	case PACKET_EVD: any_event(p, line, size); break;
	case PACKET_TRIG: any_trig(p, line, size); break;
	default: any_plain(p, line, size); break;
	}
}

/* A type, by the last one: within a block items or what ends it, outside no item. */
static uint8_t any_type(uint8_t last)
{
	uint8_t type;

	if (last == PACKET_BBP || last == PACKET_BIP)
		return any_of(4) == 0 ? PACKET_BEP : PACKET_BIP;
	do
		type = (uint8_t)any_of(PACKET_TRIG + 1);
	while (type == PACKET_BIP);
	return type;
}

#define N_RANDOM 400u

static void check_random(uint64_t from)
{
	static struct packet packets[N_RANDOM];
	static char text[65000], line[256];
	struct packet_cursor c;
	struct ptscript s;
	size_t used = 0;

	seed = from;
	for (size_t i = 0; i < N_RANDOM; i++) {
		packets[i] =
			(struct packet){.type = any_type(i > 0 ? packets[i - 1].type : PACKET_PAD)};
		any_packet(&packets[i], line, sizeof(line));
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s\n", line);
	}
	if (encode(&s, text) != 0)
		fail_msg("seed %" PRIu64 ": %s", from, s.error);
	c = (struct packet_cursor){.pos = s.trace.data, .end = s.trace.data + s.trace.size};
	for (size_t i = 0; i < N_RANDOM; i++) {
		struct packet p;

		assert_int_equal(packet_next(&c, &p), 0);
		packet_format(&p, 0, line, sizeof(line));
		if (!same(&p, &packets[i]))
			fail_msg("seed %" PRIu64 ": line %zu read as %s", from, i + 2, line);
	}
	assert_ptr_equal(c.pos, c.end);
	ptscript_done(&s);
}

static void trace_random_packets_are_read_as_they_were_written(void **state)
{
	(void)state;
	for (uint64_t i = 1; i <= 100; i++)
		check_random(i * UINT64_C(0x9e3779b97f4a7c15));
}

/* An address that the decoder decompresses to the same, whatever the form. */
static void trace_addresses_are_compressed_against_the_last(void **state)
{
	static const char trace[] = "psb\ntip(main)\nfup(1: main+1)\ntip.pgd\n"
				    "tip.pge(0xffffffff81000000)\ntip(0x1122334455667788)\n"
				    "tip(0x1122334455660000)\npsb\ntip(0x7fff)\n"
				    "tip(main)\novf\nfup(2: 0x12345678)\n";
	static const uint64_t ips[] = {MAIN,
				       MAIN + 1,
				       0,
				       UINT64_C(0xffffffff81000000),
				       UINT64_C(0x1122334455667788),
				       UINT64_C(0x1122334455660000),
				       0x7fff,
				       MAIN,
				       0x12345678};
	struct packet_cursor c;
	uint64_t last = 0, ip;
	struct ptscript s;
	struct packet p;
	size_t i = 0;

	(void)state;
	assert_int_equal(encode(&s, trace), 0);
	c = (struct packet_cursor){.pos = s.trace.data, .end = s.trace.data + s.trace.size};
	while (packet_next(&c, &p) == 0) {
		ip = 0;
		if (p.type == PACKET_PSB || p.type == PACKET_OVF)
			last = 0;
		else if (packet_ip(&p, &last, &ip) || true)
			assert_true(ip == ips[i++]);
	}
	assert_int_equal(i, sizeof(ips) / sizeof(ips[0]));
	ptscript_done(&s);
}

static void trace_label_is_the_offset_of_its_packet(void **state)
{
	struct bytes_out out;
	struct ptscript s;

	(void)state;
	assert_int_equal(
		ptscript_parse(&s, "t.pts", "trace:\npsb\nend: psbend\nexpect packets:\n{end}\n"),
		0);
	bytes_out_init(&out, 4096);
	assert_int_equal(ptscript_trace(&s), 0);
	assert_int_equal(ptscript_expand(&s, &s.sections[1], &out), 0);
	assert_int_equal(out.size, 17);
	assert_memory_equal(out.data, "0000000000000010\n", 17);
	bytes_out_done(&out);
	ptscript_done(&s);
}

struct bad {
	const char *text, *error;
};

static const struct bad bad_traces[] = {
	{"nop", "t.pts:2: no packet `nop'"},
	{"pad\nnop", "t.pts:3: no packet `nop'"},
	{"psb(1)", "t.pts:2: psb: 1 arguments, not 0 to 0"},
	{"tma(1)", "t.pts:2: tma: 1 arguments, not 2 to 2"},
	{"tsc(1", "t.pts:2: no ) at the end"},
	{"tsc(1) 2", "t.pts:2: no ) at the end"},
	{"tma(1,)", "t.pts:2: an empty argument"},
	{"tma(,)", "t.pts:2: an empty argument"},
	{"here:", "t.pts:2: nothing behind the label"},
	{"1x: pad", "t.pts:2: `1x' is no label"},
	{"a b: pad", "t.pts:2: `a b' is no label"},
	{"pad pad", "t.pts:2: `pad pad' is no name"},
	{"(1)", "t.pts:2: `' is no name"},
	{"main: pad", "t.pts:2: a second label `main'"},
	{"a: pad\na: pad", "t.pts:3: a second label `a'"},
	{"tsc(1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8)",
	 "t.pts:2: more than 16 arguments"},
	{"tnt()", "t.pts:2: tnt: 0 arguments, not 1 to 1"},
	{"tnt(!.x)", "t.pts:2: tnt: give ! for taken and . for not taken, not `x'"},
	{"tnt(!!!!!!!)", "t.pts:2: tnt: more than 6 branches"},
	{"tnt64(!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!!)",
	 "t.pts:2: tnt64: more than 47 branches"},
	{"tip(5: 0)", "t.pts:2: tip: IPBytes may be 1, 2, 3, 4 or 6, not `5'"},
	{"tip(0: 0)", "t.pts:2: tip: IPBytes may be 1, 2, 3, 4 or 6, not `0'"},
	{"tip(8: 0)", "t.pts:2: tip: IPBytes may be 1, 2, 3, 4 or 6, not `8'"},
	{"tip(x: 0)", "t.pts:2: no label `x'"},
	{"tip(none)", "t.pts:2: no label `none'"},
	{"tip(main+x)", "t.pts:2: `x' is no number"},
	{"tip(0x)", "t.pts:2: `0x' is no number"},
	{"tip(0x11112222333344445)", "t.pts:2: `0x11112222333344445' is no number"},
	{"tip(-1)", "t.pts:2: `-1' is no number"},
	{"tip(1: main)", "t.pts:2: tip: IPBytes 1 behind 0x0 cannot express 0x401000"},
	{"tip(2: 0x100000000)", "t.pts:2: tip: IPBytes 2 behind 0x0 cannot express 0x100000000"},
	{"tip(3: 0x800000000000)",
	 "t.pts:2: tip: IPBytes 3 behind 0x0 cannot express 0x800000000000"},
	{"tip(main)\npsb\ntip(1: main)",
	 "t.pts:4: tip: IPBytes 1 behind 0x0 cannot express 0x401000"},
	{"tip(1: raw 0x10000)", "t.pts:2: tip: 0x10000 has more than 2 bytes"},
	{"pip(0x10)", "t.pts:2: pip: bits 4:0 of CR3 are not in the packet: `0x10'"},
	{"pip(0x10000000000000)", "t.pts:2: 0x10000000000000 is more than 0xfffffffffffff"},
	{"pip(0x20, root)", "t.pts:2: pip: what is `root'"},
	{"vmcs(0x800)", "t.pts:2: vmcs: bits 11:0 of the address are not in the packet: `0x800'"},
	{"vmcs(0x10000000000000)", "t.pts:2: 0x10000000000000 is more than 0xfffffffffffff"},
	{"mode.exec(8)", "t.pts:2: mode.exec: 16, 32 or 64, not `8'"},
	{"mode.exec(64, of)", "t.pts:2: mode.exec: what is `of'"},
	{"mode.tsx(end)", "t.pts:2: mode.tsx: begin, commit or abort, not `end'"},
	{"cbr(256)", "t.pts:2: 0x100 is more than 0xff"},
	{"mtc(256)", "t.pts:2: 0x100 is more than 0xff"},
	{"tsc(0x100000000000000)", "t.pts:2: 0x100000000000000 is more than 0xffffffffffffff"},
	{"tma(0x10000, 0)", "t.pts:2: 0x10000 is more than 0xffff"},
	{"tma(0, 512)", "t.pts:2: 0x200 is more than 0x1ff"},
	{"cyc(x)", "t.pts:2: no label `x'"},
	{"ptw(1)", "t.pts:2: ptw: give 4: or 8: and the payload, not `1'"},
	{"ptw(2: 1)", "t.pts:2: ptw: give 4: or 8: and the payload, not `1'"},
	{"ptw(4: 0x100000000)", "t.pts:2: 0x100000000 is more than 0xffffffff"},
	{"ptw(4: 1, pi)", "t.pts:2: ptw: what is `pi'"},
	{"exstop(1)", "t.pts:2: exstop: what is `1'"},
	{"mwait(256, 0)", "t.pts:2: 0x100 is more than 0xff"},
	{"mwait(0, 4)", "t.pts:2: 0x4 is more than 0x3"},
	{"pwre(6)", "t.pts:2: pwre: give a C-state as c6, not `6'"},
	{"pwre(c16)", "t.pts:2: pwre: no such C-state `c16'"},
	{"pwre(c1.16)", "t.pts:2: pwre: no such sub-state `16'"},
	{"pwre(c1.x)", "t.pts:2: no label `x'"},
	{"pwre(c1, sw)", "t.pts:2: pwre: what is `sw'"},
	{"pwrx(c1, c1)", "t.pts:2: pwrx: give int:, store: or hw: before `c1'"},
	{"pwrx(sw: c1, c1)", "t.pts:2: pwrx: give int:, store: or hw: before `c1'"},
	{"pwrx(hw: c1.1, c1)", "t.pts:2: `1.1' is no number"},
	{"pwrx(hw: c1, 1)", "t.pts:2: pwrx: give a C-state as c6, not `1'"},
	{"bbp(32, 4)", "t.pts:2: 0x20 is more than 0x1f"},
	{"bbp(1, 2)", "t.pts:2: bbp: items have 4 or 8 bytes, not `2'"},
	{"bip(1, 2)", "t.pts:2: bip: only between bbp and bep, item `1'"},
	{"bbp(1, 4)\nbep\nbip(1, 2)", "t.pts:4: bip: only between bbp and bep, item `1'"},
	{"bbp(1, 4)\novf\nbip(1, 2)", "t.pts:4: bip: only between bbp and bep, item `1'"},
	{"bbp(1, 4)\nbip(32, 2)", "t.pts:3: 0x20 is more than 0x1f"},
	{"bbp(1, 4)\nbip(1, 0x100000000)", "t.pts:3: 0x100000000 is more than 0xffffffff"},
	{"bep(pi)", "t.pts:2: bep: what is `pi'"},
	{"cfe(none, 0)", "t.pts:2: no label `none'"},
	{"cfe(32, 0)", "t.pts:2: 0x20 is more than 0x1f"},
	{"cfe(intr, 256)", "t.pts:2: 0x100 is more than 0xff"},
	{"cfe(intr, 1, pi)", "t.pts:2: cfe: what is `pi'"},
	{"evd(64, 0)", "t.pts:2: 0x40 is more than 0x3f"},
	{"trig(256)", "t.pts:2: 0x100 is more than 0xff"},
	{"trig(1, ip, ip)", "t.pts:2: trig: what is `ip'"},
	{"trig(1, icnt)", "t.pts:2: trig: give icnt: and a number, not `icnt'"},
	{"trig(1, cnt: 5)", "t.pts:2: trig: what is `cnt'"},
	{"trig(1, icnt: 65536)", "t.pts:2: 0x10000 is more than 0xffff"},
	{"bytes(0)", "t.pts:2: bytes: two hexadecimal digits a byte, not `'"},
	{"bytes(0x1)", "t.pts:2: bytes: two hexadecimal digits a byte, not `x1'"},
};

static void trace_what_is_wrong_is_named_with_its_line(void **state)
{
	struct ptscript s;

	(void)state;
	for (size_t i = 0; i < sizeof(bad_traces) / sizeof(bad_traces[0]); i++) {
		int r = encode(&s, bad_traces[i].text);

		if (r != -EINVAL || strcmp(s.error, bad_traces[i].error) != 0)
			fail_msg("%s: %d, %s", bad_traces[i].text, r, s.error);
		ptscript_done(&s);
	}
}

static void trace_line_beyond_the_limit_is_refused(void **state)
{
	char text[1024];
	struct ptscript s;

	(void)state;
	memset(text, ' ', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(encode(&s, text), -EINVAL);
	assert_string_equal(s.error, "t.pts:2: longer than 511 characters");
	ptscript_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trace_every_packet_is_what_the_decoder_reads),
		cmocka_unit_test(trace_random_packets_are_read_as_they_were_written),
		cmocka_unit_test(trace_addresses_are_compressed_against_the_last),
		cmocka_unit_test(trace_label_is_the_offset_of_its_packet),
		cmocka_unit_test(trace_what_is_wrong_is_named_with_its_line),
		cmocka_unit_test(trace_line_beyond_the_limit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
