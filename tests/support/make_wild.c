/*
 * Makes random programs and their traces. Packets follow the SDM (volume 3, "Trace Packets and Data
 * Types") and do not use our encoder.
 */
#include "tests/support/make_wild.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/make_elf.h"

#define CODE_AT	  0x200u
#define CODE_SIZE 0x600u
#define SYMTAB_AT 0x800u
#define STRTAB_AT 0xa80u
#define SHSTR_AT  0xb80u
#define SHDR_AT	  0xc00u
#define FILE_SIZE (SHDR_AT + 5 * sizeof(Elf64_Shdr))

#define FUNCTIONS 12u
#define BRANCHES  300u /* of a round, that packets show */
#define RETURNS	  64u  /* of the processor's stack */
#define FRAMES	  4096u

enum kind { PLAIN, COND, JUMP, CALL, JUMP_IND, CALL_IND, RET, SYSCALL };

struct wild {
	uint32_t random;
	uint8_t code[CODE_SIZE];
	uint8_t kinds[CODE_SIZE]; /* kind of the instruction that begins at the offset, plus one; 0:
				   * none */
	uint8_t sizes[CODE_SIZE];
	uint32_t targets[CODE_SIZE];
	uint32_t size, starts[FUNCTIONS + 1];
	/* Execution. */
	struct bytes_out *out;
	uint64_t base, tsc, bits;
	unsigned int n_bits;
	uint32_t at;
	uint32_t frames[FRAMES], n_frames;
	uint32_t returns[RETURNS];
	unsigned int n_returns;
	bool cycs;
};

static uint32_t draw(struct wild *w, uint32_t below)
{
	w->random = w->random * 1664525u + 1013904223u;
	return (w->random >> 8) % below;
}

/* --- The program --- */

static void put_insn(struct wild *w, enum kind kind, const void *bytes, uint8_t size)
{
	memcpy(w->code + w->size, bytes, size);
	w->kinds[w->size] = (uint8_t)(kind + 1);
	w->sizes[w->size] = size;
	w->size += size;
}

static void put_plain(struct wild *w)
{
	unsigned int i, n = draw(w, 4);

	for (i = 0; i < n; i++)
		put_insn(w, PLAIN, "\xff\xc1", 2);
}

/* Appends an instruction whose target (rel32) is not known yet. */
static void put_relative(struct wild *w, enum kind kind)
{
	if (kind == COND)
		put_insn(w, kind, "\x0f\x85\0\0\0\0", 6);
	else
		put_insn(w, kind, kind == CALL ? "\xe8\0\0\0\0" : "\xe9\0\0\0\0", 5);
}

static void put_branch(struct wild *w)
{
	switch (draw(w, 12)) {
	case 0: put_relative(w, JUMP); break;
	case 1:
	case 2: put_relative(w, CALL); break;
	case 3: put_insn(w, JUMP_IND, "\xff\xe0", 2); break;
	case 4: put_insn(w, CALL_IND, "\xff\xd0", 2); break;
	case 5: put_insn(w, RET, "\xc3", 1); break;
	case 6:
		if (draw(w, 4) == 0)
			put_insn(w, SYSCALL, "\x0f\x05", 2);
		break;
	default: put_relative(w, COND); break;
	}
}

/* Each function has a conditional branch before it can lead to another function: packets do not
 * show how often a loop without one ran. */
static void put_function(struct wild *w)
{
	unsigned int i, n = 2 + draw(w, 8);

	put_plain(w);
	put_relative(w, COND);
	for (i = 0; i < n; i++) {
		put_plain(w);
		put_branch(w);
	}
	/* Otherwise the function runs into the next one. */
	if (draw(w, 3) > 0)
		put_insn(w, RET, "\xc3", 1);
}

/* Finds an instruction that begins in [FROM, TO). */
static uint32_t draw_place(struct wild *w, uint32_t from, uint32_t to)
{
	uint32_t at = from + draw(w, to - from);

	while (w->kinds[at] == 0)
		at--;
	return at;
}

static uint32_t draw_start(struct wild *w)
{
	return w->starts[draw(w, FUNCTIONS)];
}

static void link_insn(struct wild *w, uint32_t at, uint32_t from, uint32_t to)
{
	enum kind kind = w->kinds[at] - 1;
	uint32_t end = at + w->sizes[at], target;
	int32_t relative;

	if (kind != COND && kind != JUMP && kind != CALL)
		return;
	if (kind == COND)
		target = draw_place(w, from, to);
	else
		target = kind == CALL && draw(w, 16) == 0 ? end : draw_start(w);
	relative = (int32_t)(target - end);
	memcpy(w->code + end - 4, &relative, 4);
	w->targets[at] = target;
}

static void make(struct wild *w, uint32_t seed, uint64_t base)
{
	uint32_t i, at;

	memset(w, 0, sizeof(*w));
	w->random = seed;
	w->base = base + CODE_AT;
	for (i = 0; i < FUNCTIONS; i++) {
		w->starts[i] = w->size;
		put_function(w);
	}
	put_insn(w, RET, "\xc3", 1);
	w->starts[FUNCTIONS] = w->size;
	for (i = 0; i < FUNCTIONS; i++)
		for (at = w->starts[i]; at < w->starts[i + 1]; at++)
			if (w->kinds[at] != 0)
				link_insn(w, at, w->starts[i], w->starts[i + 1]);
}

/* One in five functions has no symbol; the symbol of one in five overlaps the next function. */
static void add_symbols(const struct wild *w, uint8_t *file, uint64_t base)
{
	char *names = (char *)file + STRTAB_AT;
	uint32_t i, name = 1;

	for (i = 0; i < FUNCTIONS; i++) {
		Elf64_Sym symbol = {.st_name = name,
				    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				    .st_shndx = 1,
				    .st_value = base + CODE_AT + w->starts[i],
				    .st_size = w->starts[i + 1] - w->starts[i]};

		if (i % 5 == 3)
			symbol.st_size += 40;
		if (i % 5 == 1)
			symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT);
		memcpy(file + SYMTAB_AT + (i + 1) * sizeof(symbol), &symbol, sizeof(symbol));
		name += (uint32_t)snprintf(names + name, 8, "f%u", i) + 1;
	}
}

void make_wild_program(uint32_t seed, uint64_t base, struct bytes_out *out)
{
	static const char names[] = MAKE_ELF_SECTIONS;
	struct make_elf layout = {.base = base,
				  .size = FILE_SIZE,
				  .text = CODE_AT,
				  .symtab = SYMTAB_AT,
				  .n_symbols = FUNCTIONS + 1,
				  .strtab = STRTAB_AT,
				  .strtab_size = SHSTR_AT - STRTAB_AT,
				  .shstr = SHSTR_AT,
				  .shstr_size = sizeof(names),
				  .headers = SHDR_AT,
				  .n_sections = 5};
	uint8_t *file = bytes_put_space(out, FILE_SIZE);
	struct wild w;

	if (file == NULL)
		return;
	make(&w, seed, base);
	layout.text_size = w.size;
	memset(file, 0, FILE_SIZE);
	make_elf_begin(file, &layout);
	memcpy(file + CODE_AT, w.code, w.size);
	add_symbols(&w, file, base);
	memcpy(file + SHSTR_AT, names, sizeof(names));
	make_elf_sections(file, &layout);
}

/* --- Its trace --- */

/* With an even seed CBR packets appear, too, before some packets. */
static void put_cyc(struct wild *w)
{
	if (w->cycs && draw(w, 3) == 0)
		bytes_put_u8(w->out, (uint8_t)(draw(w, 32) << 3 | 3));
}

static void put_bits(struct wild *w)
{
	uint64_t payload;
	unsigned int i;

	if (w->n_bits == 0)
		return;
	put_cyc(w);
	payload = UINT64_C(1) << w->n_bits | w->bits;
	if (w->n_bits <= 6) {
		bytes_put_u8(w->out, (uint8_t)(payload << 1));
	} else {
		bytes_put_u16(w->out, 0xa302);
		for (i = 0; i < 48; i += 8)
			bytes_put_u8(w->out, (uint8_t)(payload >> i));
	}
	w->bits = w->n_bits = 0;
}

static void put_tsc(struct wild *w)
{
	unsigned int i;

	put_bits(w);
	bytes_put_u8(w->out, 0x19);
	for (i = 0; i < 56; i += 8)
		bytes_put_u8(w->out, (uint8_t)(w->tsc >> i));
}

/* OPCODE 0x0d: TIP, 0x11: TIP.PGE, 0x1d: FUP. */
static void put_ip(struct wild *w, uint8_t opcode, uint32_t at)
{
	uint64_t ip = w->base + at;
	unsigned int i;

	put_bits(w);
	if (opcode == 0x0d)
		put_cyc(w);
	bytes_put_u8(w->out, (uint8_t)(opcode | 3 << 5)); /* 6 bytes, sign extended */
	for (i = 0; i < 48; i += 8)
		bytes_put_u8(w->out, (uint8_t)(ip >> i));
}

static void put_psb(struct wild *w, bool on)
{
	unsigned int i;

	put_bits(w);
	for (i = 0; i < 8; i++)
		bytes_put_u16(w->out, 0x8202);
	put_tsc(w);
	if (w->cycs)
		bytes_put_block(w->out, "\x02\x03\x20", 4); /* CBR: 32 */
	bytes_put_u16(w->out, 0x0199);			    /* MODE.Exec: 64 bits */
	if (on)
		put_ip(w, 0x1d, w->at);
	bytes_put_u16(w->out, 0x2302);
	w->n_returns = 0;
}

static void decide(struct wild *w, bool taken)
{
	w->bits = w->bits << 1 | taken;
	if (++w->n_bits == 47 || (w->n_bits >= 6 && draw(w, 8) == 0))
		put_bits(w);
}

static void call(struct wild *w, uint32_t next)
{
	if (w->n_frames == FRAMES)
		w->n_frames = 0;
	w->frames[w->n_frames++] = next;
	if (w->n_returns == RETURNS)
		memmove(w->returns, w->returns + 1, --w->n_returns * sizeof(w->returns[0]));
	w->returns[w->n_returns++] = next;
}

/* Sometimes returns over several frames at once, or elsewhere. */
static void go_back(struct wild *w)
{
	uint32_t to = draw_start(w), expected = UINT32_MAX;

	while (w->n_frames > 0 && draw(w, 50) == 0)
		w->n_frames--;
	if (w->n_frames > 0)
		to = w->frames[--w->n_frames];
	if (w->n_returns > 0)
		expected = w->returns[--w->n_returns];
	w->at = to;
	if (to == expected)
		decide(w, true);
	else
		put_ip(w, 0x0d, to);
}

/* False: execution left user code. */
static bool execute(struct wild *w)
{
	uint32_t at = w->at, next = at + w->sizes[at];
	bool taken;

	w->at = next;
	switch (w->kinds[at] - 1) {
	case COND:
		taken = draw(w, 2) != 0;
		decide(w, taken);
		w->at = taken ? w->targets[at] : next;
		break;
	case CALL:
		if (w->targets[at] != next)
			call(w, next);
		w->at = w->targets[at];
		break;
	case JUMP: w->at = w->targets[at]; break;
	case CALL_IND: call(w, next); /* fall through */
	case JUMP_IND:
		w->at = draw(w, 8) > 0 ? draw_start(w) : draw_place(w, 0, w->size);
		put_ip(w, 0x0d, w->at);
		break;
	case RET: go_back(w); break;
	case SYSCALL: return false;
	default: break;
	}
	return true;
}

/* Runs user code for at most TICKS. */
static void put_round(struct wild *w, uint64_t ticks)
{
	uint64_t end = w->tsc + ticks;
	unsigned int i = 0;

	put_tsc(w);
	put_ip(w, 0x11, w->at);
	while (i < BRANCHES) {
		bool told = w->kinds[w->at] != PLAIN + 1 && w->kinds[w->at] != JUMP + 1 &&
			    w->kinds[w->at] != CALL + 1;

		if (!execute(w))
			break;
		i += told;
		if (!told || draw(w, 20) > 0)
			continue;
		w->tsc += w->tsc + 5 < end ? draw(w, 5) : 0;
		if (draw(w, 8) == 0)
			put_psb(w, true);
		else
			put_tsc(w);
	}
	w->tsc = end;
	put_tsc(w);
	if (i == BRANCHES)
		put_ip(w, 0x1d, w->at);
	put_bits(w);
	bytes_put_u8(w->out, 0x01); /* TIP.PGD without IP */
}

void make_wild_trace(uint32_t seed, uint64_t base, unsigned rounds, uint64_t tsc, uint64_t ticks,
		     struct bytes_out *out)
{
	struct wild w;
	unsigned int i;

	make(&w, seed, base);
	w.out = out;
	w.tsc = tsc;
	w.cycs = seed % 2 == 0;
	for (i = 0; i < rounds; i++) {
		w.tsc = tsc + i * ticks;
		if (i % 8 == 0)
			put_psb(&w, false);
		/* Perhaps enter a signal handler. */
		if (draw(&w, 6) == 0)
			w.at = draw_start(&w);
		put_round(&w, ticks / 2);
	}
}
