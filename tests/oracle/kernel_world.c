/*
 * Simulates the walk: decodes instruction by instruction with Zydis, takes a random way at each
 * branch, records it, and writes packets as a processor would.
 */
#include "tests/oracle/kernel_world.h"

#include <elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base.h"

#define AUX_SIZE   ((size_t)1 << 28)
#define ROOM	   16u /* bytes behind the text */
#define TSC_PERIOD 400u
#define INT3_TIME  12000u
#define FIRST_TSC  1000000u
#define NEVER	   UINT64_MAX

_Noreturn void world_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "kernel_walk: ");
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

void *world_must(void *p)
{
	if (p == NULL)
		world_die("no memory");
	return p;
}

static uint64_t random_of(struct world *w, uint64_t n)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random % n;
}

/* --- Code --- */

/* Placed behind the text, so that there is at least one iretq. */
static const uint8_t way_back[2] = {0x48, 0xcf};

void world_load_memory(struct world *w, const char *path, uint64_t address)
{
	FILE *f = fopen(path, "rbe");
	long size = f != NULL && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : 0;

	if (size < 4096)
		world_die("%s: no code", path);
	w->kernel = (struct text){world_must(calloc(1, (size_t)size + ROOM)), address,
				  (uint64_t)size + 2};
	rewind(f);
	if (fread(w->kernel.bytes, (size_t)size, 1, f) != 1)
		world_die("%s: cut", path);
	fclose(f);
	memcpy(w->kernel.bytes + size, way_back, sizeof(way_back));
}

void world_load(struct world *w, const char *path)
{
	FILE *f = fopen(path, "rbe");
	Elf64_Ehdr head;

	if (f == NULL || fread(&head, sizeof(head), 1, f) != 1 ||
	    memcmp(head.e_ident, ELFMAG, 4) != 0)
		world_die("%s: no ELF file", path);
	for (unsigned i = 0; i < head.e_shnum; i++) {
		Elf64_Shdr s;

		if (fseek(f, (long)(head.e_shoff + (uint64_t)i * head.e_shentsize), SEEK_SET) !=
			    0 ||
		    fread(&s, sizeof(s), 1, f) != 1)
			world_die("%s: cut", path);
		if (s.sh_type != SHT_PROGBITS || (s.sh_flags & SHF_EXECINSTR) == 0 ||
		    s.sh_size <= w->kernel.size)
			continue;
		free(w->kernel.bytes);
		w->kernel.bytes = world_must(calloc(1, s.sh_size + ROOM));
		w->kernel.size = s.sh_size;
		w->kernel.address = s.sh_addr | (s.sh_addr < KERNEL_START ? KERNEL_START : 0);
		if (fseek(f, (long)s.sh_offset, SEEK_SET) != 0 ||
		    fread(w->kernel.bytes, s.sh_size, 1, f) != 1)
			world_die("%s: cut", path);
	}
	fclose(f);
	if (w->kernel.size < 4096)
		world_die("%s: no code", path);
	memcpy(w->kernel.bytes + w->kernel.size, way_back, sizeof(way_back));
	w->kernel.size += sizeof(way_back);
}

static const struct text *text_of(const struct world *w, uint64_t ip)
{
	return ip >= KERNEL_START ? &w->kernel : &w->user[w->process];
}

static bool decode(const struct world *w, uint64_t ip, ZydisDecodedInstruction *ret)
{
	const struct text *t = text_of(w, ip);

	return ip - t->address < t->size && ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(
						    &w->zydis, NULL, t->bytes + (ip - t->address),
						    t->size - (ip - t->address), ret));
}

static uint64_t target_of(const ZydisDecodedInstruction *d, uint64_t ip)
{
	return ip + d->length + (uint64_t)d->raw.imm[0].value.s;
}

static bool is_inside(const struct world *w, uint64_t ip)
{
	return ip - w->kernel.address < w->kernel.size;
}

/* Finds functions (the targets of direct calls) and the ways back to user code. */
static void find_entries(struct world *w)
{
	uint64_t ip = w->kernel.address;
	ZydisDecodedInstruction d;

	w->entries = world_must(calloc(w->kernel.size / 5 + 1, sizeof(*w->entries)));
	w->exits = world_must(calloc(w->kernel.size / 2 + 1, sizeof(*w->exits)));
	while (is_inside(w, ip)) {
		if (!decode(w, ip, &d)) {
			ip++;
			continue;
		}
		if (d.mnemonic == ZYDIS_MNEMONIC_CALL && d.raw.imm[0].is_relative &&
		    is_inside(w, target_of(&d, ip)))
			w->entries[w->n_entries++] = target_of(&d, ip);
		if (d.mnemonic == ZYDIS_MNEMONIC_IRETQ || d.mnemonic == ZYDIS_MNEMONIC_SYSRET)
			w->exits[w->n_exits++] = ip;
		ip += d.length;
	}
	if (w->n_entries == 0)
		world_die("no functions");
}

static uint64_t some_entry(struct world *w)
{
	if (w->n_exits > 0 && random_of(w, 8) == 0)
		return w->exits[random_of(w, w->n_exits)];
	return w->entries[random_of(w, w->n_entries)];
}

/* --- Packets --- */

static void put_branch(struct world *w, uint64_t from, uint64_t to)
{
	if (w->n_truth == w->max_truth) {
		w->max_truth = w->max_truth ? 2 * w->max_truth : 65536;
		w->truth = world_must(reallocarray(w->truth, w->max_truth, sizeof(*w->truth)));
	}
	w->truth[w->n_truth++] = (struct branch){from, to};
	w->ip = to;
}

static void put_bit(struct world *w, bool taken)
{
	if (encode_branch(&w->tnt, taken))
		encode_tnt(&w->encoder);
	w->still = 0;
}

static void put_tip(struct world *w, uint64_t to)
{
	encode_tnt(&w->encoder);
	encode_ip(&w->encoder, PT_OPC_TIP, to);
	w->still = 0;
}

static void put_psb(struct world *w)
{
	encode_tnt(&w->encoder);
	encode_psb(&w->encoder);
	encode_mode_exec(&w->encoder, PT_MODE_EXEC_CSL);
	encode_tsc(&w->encoder, w->tsc);
	encode_ip(&w->encoder, PT_OPC_FUP, w->ip);
	encode_psbend(&w->encoder);
	encode_forget_calls(&w->state);
	w->psb_at = w->state.pos + 4096 + random_of(w, 4096);
	w->last_tsc = w->tsc;
	w->still = 0;
}

static void put_tsc(struct world *w)
{
	/* Pending decisions may be written after the TSC. */
	if (random_of(w, 2) == 0)
		encode_tnt(&w->encoder);
	encode_tsc(&w->encoder, w->tsc);
	w->last_tsc = w->tsc;
}

/* Interrupts in front of the instruction at IP. */
static void interrupt(struct world *w, uint64_t to)
{
	uint64_t from = w->ip;

	encode_tnt(&w->encoder);
	encode_ip(&w->encoder, PT_OPC_FUP, from);
	put_tip(w, to);
	if (from < KERNEL_START)
		w->resume[w->process] = from;
	put_branch(w, from, to);
	w->interrupts++;
}

/* --- Changes --- */

static struct site *site_at(struct world *w, uint64_t ip)
{
	for (size_t i = 0; i < w->n_sites; i++)
		if (w->sites[i].address == ip)
			return &w->sites[i];
	return NULL;
}

static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

static void make_jump(const struct site *s, uint8_t *to)
{
	uint32_t distance = (uint32_t)(s->target - s->address - 5);

	to[0] = 0xe9;
	memcpy(to + 1, &distance, 4);
}

/* Makes a NOP that execution met a site; the site's jump skips some instructions. */
static void note_site(struct world *w)
{
	uint64_t ip = w->ip + 5;
	ZydisDecodedInstruction d;

	if (w->n_sites == SITES_MAX || random_of(w, 2) != 0 || w->ip < KERNEL_START ||
	    memcmp(w->kernel.bytes + (w->ip - w->kernel.address), nop5, 5) != 0)
		return;
	for (size_t i = 0; i < w->n_sites; i++)
		if (w->sites[i].address + 16 > w->ip && w->ip + 16 > w->sites[i].address)
			return;
	for (uint64_t n = 1 + random_of(w, 12); n > 0; n--) {
		if (!decode(w, ip, &d) || d.mnemonic == ZYDIS_MNEMONIC_RET)
			return;
		ip += d.length;
	}
	w->sites[w->n_sites++] = (struct site){.address = w->ip, .target = ip};
}

static void toggle(struct world *w, struct site *s)
{
	uint8_t *bytes = w->kernel.bytes + (s->address - w->kernel.address);
	struct poke *p = &w->pokes[w->n_pokes++];

	p->time = w->tsc;
	memcpy(p->body, &s->address, 8);
	memcpy(p->body + 8, "\5\0\5\0", 4);
	memcpy(p->body + 12, bytes, 5);
	s->jumps = !s->jumps;
	if (s->jumps)
		make_jump(s, bytes);
	else
		memcpy(bytes, nop5, 5);
	memcpy(p->body + 17, bytes, 5);
}

/* Patches with an INT3 in between, or at once between two interrupts. */
static void begin_poke(struct world *w, size_t n_ahead)
{
	struct site *s;

	if (w->n_sites == 0 || w->n_pokes >= w->max_pokes || random_of(w, n_ahead) != 0)
		return;
	s = &w->sites[w->n_sites - 1 - random_of(w, MIN_OF(w->n_sites, (size_t)32))];
	if (s->busy_until != 0)
		return;
	/* Each CPU is interrupted before the record is written, and again after it. */
	if (random_of(w, 2) == 0) {
		s->poke_at = w->tsc + INT3_TIME / 2;
		s->busy_until = w->tsc + INT3_TIME;
		return;
	}
	interrupt(w, some_entry(w));
	w->tsc += 10;
	put_tsc(w);
	w->tsc += 10;
	toggle(w, s);
	w->tsc += 10;
	put_tsc(w);
	interrupt(w, some_entry(w));
}

static void go_on_poking(struct world *w)
{
	for (size_t i = 0; i < w->n_sites; i++) {
		struct site *s = &w->sites[i];

		if (s->busy_until == 0)
			continue;
		if (w->tsc >= s->poke_at) {
			toggle(w, s);
			s->poke_at = NEVER;
		}
		if (w->tsc >= s->busy_until)
			s->busy_until = 0;
	}
}

/* --- Execution --- */

static void walk_return(struct world *w)
{
	uint64_t from = w->ip, to = w->depth > 0 ? w->stack[--w->depth] : some_entry(w);

	if (from >= KERNEL_START && random_of(w, 64) == 0)
		to = some_entry(w);
	if (encode_return(&w->state, to) && !w->alone)
		put_bit(w, true);
	else
		put_tip(w, to);
	put_branch(w, from, to);
}

static void push(struct world *w, uint64_t ip)
{
	if (w->depth == STACK_MAX)
		w->depth = 0;
	w->stack[w->depth++] = ip;
}

/* Whether a branch to TO closes a loop without packets: nobody could tell how often the loop ran.
 */
static bool is_round(const struct world *w, uint64_t to)
{
	for (unsigned i = 0; i < w->still; i++)
		if (w->seen[i] == to)
			return true;
	return false;
}

/* A direct branch to TO cannot be shown by packets. */
static bool is_hidden(const struct world *w, uint64_t to)
{
	return is_round(w, to) || (w->ip >= KERNEL_START && !is_inside(w, to));
}

static void walk_call(struct world *w, const ZydisDecodedInstruction *d)
{
	uint64_t next = w->ip + d->length, from = w->ip, to;

	if (d->raw.imm[0].is_relative) {
		to = target_of(d, from);
		if (is_hidden(w, to)) {
			interrupt(w, some_entry(w));
			return;
		}
	} else {
		to = some_entry(w);
		put_tip(w, to);
	}
	push(w, next);
	if (to != next)
		encode_call(&w->state, next);
	put_branch(w, from, to);
}

static void walk_jump(struct world *w, const ZydisDecodedInstruction *d)
{
	uint64_t from = w->ip, to = d->raw.imm[0].is_relative ? target_of(d, from) : some_entry(w);

	if (d->raw.imm[0].is_relative && is_hidden(w, to)) {
		interrupt(w, some_entry(w));
		return;
	}
	if (!d->raw.imm[0].is_relative)
		put_tip(w, to);
	put_branch(w, from, to);
}

static void walk_cond(struct world *w, const ZydisDecodedInstruction *d)
{
	uint64_t from = w->ip, to = target_of(d, from);
	bool taken = random_of(w, 2) == 0;

	if (taken && from >= KERNEL_START && !is_inside(w, to))
		taken = false;
	put_bit(w, taken);
	if (taken)
		put_branch(w, from, to);
	else
		w->ip += d->length;
}

/* Leaves the kernel, mostly to the same process. */
static void walk_exit(struct world *w)
{
	uint64_t from = w->ip;

	if (random_of(w, 4) == 0 && !w->alone)
		w->process = !w->process;
	w->entered[w->n_entered++] = (uint8_t)w->process;
	w->depth = 0;
	put_tip(w, w->resume[w->process]);
	put_branch(w, from, w->resume[w->process]);
}

static void walk_syscall(struct world *w)
{
	uint64_t from = w->ip, to = some_entry(w);

	w->resume[w->process] = from + 2;
	w->syscalls++;
	put_tip(w, to);
	put_branch(w, from, to);
}

static void execute(struct world *w, const ZydisDecodedInstruction *d)
{
	switch (d->mnemonic) {
	case ZYDIS_MNEMONIC_RET:
		if (d->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			interrupt(w, some_entry(w));
		else
			walk_return(w);
		return;
	case ZYDIS_MNEMONIC_XBEGIN: interrupt(w, some_entry(w)); return;
	case ZYDIS_MNEMONIC_CALL:
		if (d->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			interrupt(w, some_entry(w));
		else
			walk_call(w, d);
		return;
	case ZYDIS_MNEMONIC_JMP:
		if (d->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
			interrupt(w, some_entry(w));
		else
			walk_jump(w, d);
		return;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET: walk_exit(w); return;
	case ZYDIS_MNEMONIC_SYSCALL:
		if (w->ip >= KERNEL_START)
			interrupt(w, some_entry(w));
		else
			walk_syscall(w);
		return;
	default: break;
	}
	/* XEND has this category, too. */
	if (d->meta.category == ZYDIS_CATEGORY_COND_BR && d->raw.imm[0].is_relative)
		walk_cond(w, d);
	else if (d->meta.category == ZYDIS_CATEGORY_INTERRUPT ||
		 d->meta.category == ZYDIS_CATEGORY_RET ||
		 d->meta.category == ZYDIS_CATEGORY_SYSTEM ||
		 d->meta.category == ZYDIS_CATEGORY_SYSRET ||
		 d->meta.category == ZYDIS_CATEGORY_SYSCALL ||
		 d->meta.category == ZYDIS_CATEGORY_VTX || d->mnemonic == ZYDIS_MNEMONIC_UD0 ||
		 d->mnemonic == ZYDIS_MNEMONIC_UD1 || d->mnemonic == ZYDIS_MNEMONIC_UD2)
		interrupt(w, some_entry(w));
	else
		w->ip += d->length;
}

static void step(struct world *w)
{
	struct site *s = site_at(w, w->ip);
	uint64_t chance = random_of(w, 2000);
	ZydisDecodedInstruction d;

	w->tsc++;
	if (w->tsc >= w->last_tsc + TSC_PERIOD)
		put_tsc(w);
	if (w->state.pos >= w->psb_at)
		put_psb(w);
	go_on_poking(w);
	if (s == NULL)
		note_site(w);
	if (s != NULL && s->busy_until != 0) {
		w->int3s++;
		interrupt(w, some_entry(w));
	} else if (chance < 4 || w->still == STILL_MAX || !decode(w, w->ip, &d)) {
		interrupt(w, some_entry(w));
	} else {
		w->patched += s != NULL && s->jumps;
		w->seen[w->still++] = w->ip;
		execute(w, &d);
	}
}

static void begin(struct world *w, size_t max_pokes)
{
	static const uint8_t user[2][16] = {
		{0xe8, 5, 0, 0, 0, 0x0f, 5, 0xeb, 0xf7, 0x90, 0x74, 1, 0x90, 0xc3, 0x90, 0x90},
		{0xe8, 5, 0, 0, 0, 0x0f, 5, 0xeb, 0xf7, 0x90, 0x90, 0x75, 0xfd, 0xc3, 0x90, 0x90},
	};

	ZydisDecoderInit(&w->zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	find_entries(w);
	for (unsigned i = 0; i < 2; i++) {
		w->user[i] = (struct text){world_must(malloc(16)), USER_START, 16};
		memcpy(w->user[i].bytes, user[i], 16);
		w->resume[i] = USER_START;
	}
	encode_init(&w->encoder, &w->state, &w->tnt, world_must(calloc(1, AUX_SIZE)), AUX_SIZE);
	w->max_pokes = max_pokes;
	/* Pokes in progress at the end are completed, too. */
	w->pokes = world_must(calloc(max_pokes + SITES_MAX + 1, sizeof(*w->pokes)));
	w->entered = world_must(calloc(AUX_SIZE / 4, 1));
	w->tsc = FIRST_TSC;
	w->ip = USER_START;
	put_psb(w);
}

void world_run(struct world *w, size_t branches, size_t pokes)
{
	begin(w, pokes);
	w->copy = world_must(malloc(w->kernel.size));
	while (w->n_truth < branches && w->state.pos < AUX_SIZE - 65536) {
		step(w);
		if (w->max_pokes > 0 && w->ip >= KERNEL_START)
			begin_poke(w, branches * 4 / w->max_pokes + 1);
		if (w->copy_time == 0 && w->n_truth >= branches / 2) {
			w->copy_time = w->tsc;
			memcpy(w->copy, w->kernel.bytes, w->kernel.size);
		}
	}
	encode_tnt(&w->encoder);
	encode_ip(&w->encoder, PT_OPC_FUP, w->ip);
	encode_ip_suppressed(&w->encoder, PT_OPC_TIP_PGD);
}

void world_free(struct world *w)
{
	free(w->kernel.bytes);
	free(w->user[0].bytes);
	free(w->user[1].bytes);
	free(w->entries);
	free(w->exits);
	free(w->encoder.aux);
	free(w->truth);
	free(w->entered);
	free(w->pokes);
	free(w->copy);
	free(w);
}
