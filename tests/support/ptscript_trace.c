/*
 * Writes the trace section of a script: one packet per line. Layouts follow SDM volume 3 (edition
 * 083), 33.4.2 "Packet Definitions". They are written again here on purpose, without
 * decoder/packet/packet.c or proto/perf/ptpacket.h, so that the decoder is tested against an
 * independent description.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "tests/support/ptscript.h"
#include "tests/support/ptscript_packet.h"

int packet_wrong(struct packet_writer *w, const char *why, const char *what)
{
	return ptscript_fail(w->line.script, w->line.number, "%s: %s `%s'", w->line.name, why,
			     what);
}

void packet_put(struct packet_writer *w, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		bytes_put_u8(w->out, (uint8_t)(value >> 8 * i));
}

void packet_put_opcode(struct packet_writer *w, const struct packet_kind *kind)
{
	bytes_put_block(w->out, kind->bytes, kind->size);
}

int packet_take_words(struct packet_writer *w, size_t at, const char *const *words, unsigned *ret)
{
	*ret = 0;
	for (; at < w->line.n_args; at++) {
		unsigned i = 0;

		while (words[i] != NULL && !ptscript_is(&w->line, at, words[i]))
			i++;
		if (words[i] == NULL || (*ret & 1u << i) != 0)
			return packet_wrong(w, "what is", w->line.args[at]);
		*ret |= 1u << i;
	}
	return 0;
}

static int write_fixed(struct packet_writer *w, const struct packet_kind *kind)
{
	packet_put_opcode(w, kind);
	return 0;
}

static int write_psb(struct packet_writer *w, const struct packet_kind *kind)
{
	packet_put_opcode(w, kind);
	w->last_ip = 0; /* IP compression restarts */
	w->item = 0;
	return 0;
}

static int write_ovf(struct packet_writer *w, const struct packet_kind *kind)
{
	w->item = 0; /* ends a block */
	/* "Packets that follow the OVF packet are not compressed ... against packets that were
	 * lost": SDM "Internal Buffer Overflow". The last IP may have been in a lost packet. */
	w->last_ip = 0;
	return write_fixed(w, kind);
}

/* Appends the opcode, then a number of BITS bits. */
static int write_number(struct packet_writer *w, const struct packet_kind *kind, unsigned bits)
{
	uint64_t value;
	int r = ptscript_number(&w->line, 0, BITS(bits), &value);

	if (r != 0)
		return r;
	packet_put_opcode(w, kind);
	packet_put(w, value, (bits + 7) / 8);
	return 0;
}

static int write_u8(struct packet_writer *w, const struct packet_kind *kind)
{
	return write_number(w, kind, 8);
}

static int write_tsc(struct packet_writer *w, const struct packet_kind *kind)
{
	return write_number(w, kind, 56);
}

static int write_u64(struct packet_writer *w, const struct packet_kind *kind)
{
	return write_number(w, kind, 64);
}

static int write_cbr(struct packet_writer *w, const struct packet_kind *kind)
{
	int r = write_number(w, kind, 8);

	packet_put(w, 0, 1);
	return r;
}

/* Parses the branches, oldest first, up to MAX; *ret_n: their number. */
static int take_branches(struct packet_writer *w, unsigned max, uint64_t *ret_bits, unsigned *ret_n)
{
	*ret_bits = 0;
	*ret_n = 0;
	for (const char *c = w->line.args[0]; *c != '\0'; c++) {
		if (isblank((unsigned char)*c))
			continue;
		if (*c != '!' && *c != '.')
			return packet_wrong(w, "give ! for taken and . for not taken, not", c);
		*ret_bits = *ret_bits << 1 | (*c == '!');
		if (++*ret_n > max)
			return ptscript_fail(w->line.script, w->line.number,
					     "%s: more than %u branches", w->line.name, max);
	}
	return 0;
}

/* A set bit marks the end above the oldest branch. */
static int write_tnt8(struct packet_writer *w, const struct packet_kind *kind)
{
	uint64_t bits;
	unsigned n;
	int r = take_branches(w, 6, &bits, &n);

	(void)kind;
	if (r == 0)
		packet_put(w, (UINT64_C(1) << n | bits) << 1, 1);
	return r;
}

static int write_tnt64(struct packet_writer *w, const struct packet_kind *kind)
{
	uint64_t bits;
	unsigned n;
	int r = take_branches(w, 47, &bits, &n);

	if (r != 0)
		return r;
	packet_put_opcode(w, kind);
	packet_put(w, UINT64_C(1) << n | bits, 6);
	return 0;
}

static uint64_t extend48(uint64_t ip)
{
	return (ip & BITS(47)) | ((ip >> 47 & 1) != 0 ? ~BITS(47) : 0);
}

/* The IP that a reader reconstructs when the packet has BYTES of it. */
static uint64_t compressed(uint64_t last, uint64_t ip, uint64_t bytes)
{
	switch (bytes) {
	case 1: return (last & ~BITS(16)) | (ip & BITS(16));
	case 2: return (last & ~BITS(32)) | (ip & BITS(32));
	case 3: return extend48(ip);
	case 4: return (last & ~BITS(48)) | (ip & BITS(48));
	default: return ip;
	}
}

static const uint8_t ip_sizes[8] = {0, 2, 4, 6, 6, 0, 8, 0};

/* Parses "IPBYTES: ADDRESS", "IPBYTES: raw PAYLOAD", or "ADDRESS" (which takes the shortest form
 * that fits). */
static int take_ip(struct packet_writer *w, uint64_t *ret_bytes, uint64_t *ret_ip, bool *ret_raw)
{
	static const uint8_t shortest[] = {1, 2, 3, 4, 6};
	char *key = ptscript_key(&w->line, 0), *text = w->line.args[0];
	size_t i = 0;
	int r;

	*ret_raw = key != NULL && strncmp(text, "raw ", 4) == 0;
	r = ptscript_value(w->line.script, w->line.number, *ret_raw ? text + 4 : text, ret_ip);
	if (r == 0 && key != NULL)
		r = ptscript_value(w->line.script, w->line.number, key, ret_bytes);
	if (r != 0)
		return r;
	if (key != NULL)
		return *ret_bytes < 8 && ip_sizes[*ret_bytes] > 0
			       ? 0
			       : packet_wrong(w, "IPBytes may be 1, 2, 3, 4 or 6, not", key);
	while (compressed(w->last_ip, *ret_ip, shortest[i]) != *ret_ip)
		i++;
	*ret_bytes = shortest[i];
	return 0;
}

static int check_ip(struct packet_writer *w, uint64_t ip, uint64_t bytes, bool raw)
{
	if (raw && bytes < 6 && (ip & ~BITS(8u * ip_sizes[bytes])) != 0)
		return ptscript_fail(w->line.script, w->line.number,
				     "%s: 0x%" PRIx64 " has more than %u bytes", w->line.name, ip,
				     ip_sizes[bytes]);
	if (!raw && compressed(w->last_ip, ip, bytes) != ip)
		return ptscript_fail(w->line.script, w->line.number,
				     "%s: IPBytes %" PRIu64 " behind 0x%" PRIx64
				     " cannot express 0x%" PRIx64,
				     w->line.name, bytes, w->last_ip, ip);
	return 0;
}

/* IPBytes in bits 7:5, the rest of the opcode in bits 4:0. */
static int write_ip(struct packet_writer *w, const struct packet_kind *kind)
{
	uint64_t bytes = 0, ip = 0;
	bool raw = false;
	int r = 0;

	if (w->line.n_args > 0)
		r = take_ip(w, &bytes, &ip, &raw);
	if (r == 0 && bytes > 0)
		r = check_ip(w, ip, bytes, raw);
	if (r != 0)
		return r;
	packet_put(w, (uint8_t)kind->bytes[0] | bytes << 5, 1);
	packet_put(w, ip, ip_sizes[bytes]);
	if (bytes > 0)
		w->last_ip = compressed(w->last_ip, ip, bytes);
	return 0;
}

/* CR3[51:5] in bits 47:1, NR in bit 0. */
static int write_pip(struct packet_writer *w, const struct packet_kind *kind)
{
	static const char *const words[] = {"nr", NULL};
	unsigned nr = 0;
	uint64_t cr3;
	int r = ptscript_number(&w->line, 0, BITS(52), &cr3);

	if (r == 0 && (cr3 & BITS(5)) != 0)
		return packet_wrong(w, "bits 4:0 of CR3 are not in the packet:", w->line.args[0]);
	if (r == 0)
		r = packet_take_words(w, 1, words, &nr);
	if (r != 0)
		return r;
	packet_put_opcode(w, kind);
	packet_put(w, cr3 >> 5 << 1 | nr, 6);
	return 0;
}

static int write_vmcs(struct packet_writer *w, const struct packet_kind *kind)
{
	uint64_t base;
	int r = ptscript_number(&w->line, 0, BITS(52), &base);

	if (r == 0 && (base & BITS(12)) != 0)
		return packet_wrong(
			w, "bits 11:0 of the address are not in the packet:", w->line.args[0]);
	if (r != 0)
		return r;
	packet_put_opcode(w, kind);
	packet_put(w, base >> 12, 5);
	return 0;
}

/* Bit 0: CS.L (and LMA), bit 1: CS.D, bit 2: IF. */
static int write_exec(struct packet_writer *w, const struct packet_kind *kind)
{
	static const char *const words[] = {"if", NULL};
	unsigned iflag = 0;
	uint8_t mode = ptscript_is(&w->line, 0, "64") ? 1 : ptscript_is(&w->line, 0, "32") ? 2 : 0;
	int r = packet_take_words(w, 1, words, &iflag);

	if (r != 0)
		return r;
	if (mode == 0 && !ptscript_is(&w->line, 0, "16"))
		return packet_wrong(w, "16, 32 or 64, not", w->line.args[0]);
	packet_put_opcode(w, kind);
	packet_put(w, mode | iflag << 2, 1);
	return 0;
}

/* Leaf 1; bit 0: in a transaction; bit 1: the transaction aborted. */
static int write_tsx(struct packet_writer *w, const struct packet_kind *kind)
{
	static const char *const words[] = {"commit", "begin", "abort", NULL};
	uint64_t bits;

	for (bits = 0; bits < 3; bits++)
		if (ptscript_is(&w->line, 0, words[bits]))
			break;
	if (bits == 3)
		return packet_wrong(w, "begin, commit or abort, not", w->line.args[0]);
	packet_put_opcode(w, kind);
	packet_put(w, 1 << 5 | bits, 1);
	return 0;
}

/* CTC, a reserved byte, the 9 bits of the fast counter. */
static int write_tma(struct packet_writer *w, const struct packet_kind *kind)
{
	uint64_t ctc, fc;
	int r = ptscript_number(&w->line, 0, BITS(16), &ctc);

	if (r == 0)
		r = ptscript_number(&w->line, 1, BITS(9), &fc);
	if (r != 0)
		return r;
	packet_put_opcode(w, kind);
	packet_put(w, ctc, 2);
	packet_put(w, 0, 1);
	packet_put(w, fc, 2);
	return 0;
}

/* First byte: 5 bits of the count above Exp in bit 2. Each further byte: 7 bits above Exp in bit 0.
 */
static int write_cyc(struct packet_writer *w, const struct packet_kind *kind)
{
	uint64_t value;
	int r = ptscript_number(&w->line, 0, UINT64_MAX, &value);

	(void)kind;
	if (r != 0)
		return r;
	packet_put(w, (value & BITS(5)) << 3 | (value >> 5 != 0 ? 4u : 0u) | 3, 1);
	for (value >>= 5; value != 0; value >>= 7)
		packet_put(w, (value & BITS(7)) << 1 | (value >> 7 != 0 ? 1u : 0u), 1);
	return 0;
}

/* Two hexadecimal digits per byte, for bytes that no processor would write. */
static int write_bytes(struct packet_writer *w, const struct packet_kind *kind)
{
	(void)kind;
	for (const char *c = w->line.args[0]; *c != '\0';) {
		int n = 0;
		unsigned value;

		if (isblank((unsigned char)*c)) {
			c++;
			continue;
		}
		for (value = 0; n < 2 && isxdigit((unsigned char)*c); n++, c++)
			value = value << 4 |
				(unsigned)(isdigit((unsigned char)*c) ? *c - '0'
								      : (*c | 0x20) - 'a' + 10);
		if (n != 2)
			return packet_wrong(w, "two hexadecimal digits a byte, not", c);
		packet_put(w, value, 1);
	}
	return 0;
}

#define BYTES(text) text, sizeof(text) - 1
#define PSB	    "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"

/* clang-format off */
static const struct packet_kind kinds[] = {
	{"pad", 0, 0, write_fixed, BYTES("\x00")},
	{"psb", 0, 0, write_psb, BYTES(PSB)},
	{"psbend", 0, 0, write_fixed, BYTES("\x02\x23")},
	{"ovf", 0, 0, write_ovf, BYTES("\x02\xf3")},
	{"stop", 0, 0, write_fixed, BYTES("\x02\x83")},
	{"tnt", 1, 1, write_tnt8, NULL, 0},
	{"tnt64", 1, 1, write_tnt64, BYTES("\x02\xa3")},
	{"tip", 0, 1, write_ip, BYTES("\x0d")},
	{"tip.pge", 0, 1, write_ip, BYTES("\x11")},
	{"tip.pgd", 0, 1, write_ip, BYTES("\x01")},
	{"fup", 0, 1, write_ip, BYTES("\x1d")},
	{"pip", 1, 2, write_pip, BYTES("\x02\x43")},
	{"mode.exec", 1, 2, write_exec, BYTES("\x99")},
	{"mode.tsx", 1, 1, write_tsx, BYTES("\x99")},
	{"cbr", 1, 1, write_cbr, BYTES("\x02\x03")},
	{"tsc", 1, 1, write_tsc, BYTES("\x19")},
	{"mtc", 1, 1, write_u8, BYTES("\x59")},
	{"tma", 2, 2, write_tma, BYTES("\x02\x73")},
	{"cyc", 1, 1, write_cyc, NULL, 0},
	{"vmcs", 1, 1, write_vmcs, BYTES("\x02\xc8")},
	{"mnt", 1, 1, write_u64, BYTES("\x02\xc3\x88")},
	{"ptw", 1, 2, packet_write_ptw, BYTES("\x02")},
	{"exstop", 0, 1, packet_write_exstop, BYTES("\x02\x62")},
	{"mwait", 2, 2, packet_write_mwait, BYTES("\x02\xc2")},
	{"pwre", 1, 2, packet_write_pwre, BYTES("\x02\x22")},
	{"pwrx", 2, 2, packet_write_pwrx, BYTES("\x02\xa2")},
	{"bbp", 2, 2, packet_write_bbp, BYTES("\x02\x63")},
	{"bip", 2, 2, packet_write_bip, NULL, 0},
	{"bep", 0, 1, packet_write_bep, BYTES("\x02\x33")},
	{"cfe", 1, 3, packet_write_cfe, BYTES("\x02\x13")},
	{"evd", 2, 2, packet_write_evd, BYTES("\x02\x53")},
	{"trig", 1, 4, packet_write_trig, BYTES("\xd9")},
	{"bytes", 1, 1, write_bytes, NULL, 0},
};
/* clang-format on */

static int write_packet(struct packet_writer *w)
{
	size_t i = 0;

	while (i < sizeof(kinds) / sizeof(kinds[0]) && strcmp(w->line.name, kinds[i].name) != 0)
		i++;
	if (i == sizeof(kinds) / sizeof(kinds[0]))
		return ptscript_fail(w->line.script, w->line.number, "no packet `%s'",
				     w->line.name);
	if (w->line.n_args < kinds[i].min || w->line.n_args > kinds[i].max)
		return ptscript_fail(w->line.script, w->line.number,
				     "%s: %zu arguments, not %zu to %zu", w->line.name,
				     w->line.n_args, kinds[i].min, kinds[i].max);
	return kinds[i].write(w, &kinds[i]);
}

int ptscript_trace(struct ptscript *s)
{
	const struct ptscript_section *section = ptscript_find(s, PTSCRIPT_TRACE);
	struct packet_writer w = {.line.script = s, .out = &s->trace};
	const char *text = section != NULL ? section->text : "";
	int r = 0;

	bytes_out_reset(&s->trace);
	w.line.number = section != NULL ? section->line + 1 : 0;
	for (; *text != '\0' && r == 0; w.line.number++) {
		r = ptscript_line_read(&w.line, text, &text);
		if (r == 0 && w.line.label != NULL &&
		    ptscript_add_label(s, w.line.label, s->trace.size) != 0)
			r = ptscript_fail(s, w.line.number, "a second label `%s'", w.line.label);
		if (r == 0 && w.line.name != NULL)
			r = write_packet(&w);
		if (r == 0 && s->trace.error != 0)
			r = ptscript_fail(s, w.line.number, "too many bytes");
	}
	return r;
}
