/*
 * Makes synthetic bundles. The trace follows the SDM (volume 3, "Trace Packets and Data Types") and
 * does not use our encoder.
 */
#include "tests/support/make_bundle.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proto/base.h"
#include "proto/bundle/bundle.h"
#include "proto/perf/perfrecord.h"
#include "tests/support/make_elf.h"
#include "tests/support/make_wild.h"

static const uint8_t main_code[] = {0xe8, 0x1b, 0,    0,    0,	  0x85, 0xc0, 0x74,
				    0x02, 0x90, 0x90, 0x0f, 0x05, 0xeb, 0xf1};
static const uint8_t leaf_code[] = {0xff, 0xc1, 0xc3};
static const char names[] = "\0main\0leaf\0tail";
static const char section_names[] = MAKE_ELF_SECTIONS "\0.note.gnu.build-id";

#define MAIN_AT	  0x200u
#define TAIL_AT	  0x207u
#define LEAF_AT	  0x220u
#define NOTE_AT	  0x240u
#define SYMTAB_AT 0x280u
#define STRTAB_AT 0x300u
#define SHSTR_AT  0x320u
#define SHDR_AT	  0x380u
#define N_SECT	  6u
#define FILE_SIZE (SHDR_AT + N_SECT * sizeof(Elf64_Shdr))

uint64_t make_bundle_insns(unsigned rounds)
{
	return rounds == 0 ? 0 : (uint64_t)rounds * 6 + (rounds + 1) / 2 * 2 + rounds - 1;
}

static void put_ip(struct bytes_out *out, uint8_t opcode, uint64_t ip)
{
	int i;

	bytes_put_u8(out, (uint8_t)(opcode | 3 << 5)); /* 6 bytes, sign extended */
	for (i = 0; i < 48; i += 8)
		bytes_put_u8(out, (uint8_t)(ip >> i));
}

static void put_tsc(struct bytes_out *out, uint64_t tsc)
{
	int i;

	bytes_put_u8(out, 0x19);
	for (i = 0; i < 56; i += 8)
		bytes_put_u8(out, (uint8_t)(tsc >> i));
}

static void put_psb(struct bytes_out *out, uint64_t tsc)
{
	int i;

	for (i = 0; i < 8; i++)
		bytes_put_u16(out, 0x8202);
	put_tsc(out, tsc);
	bytes_put_u16(out, 0x0199); /* MODE.Exec: 64 bits */
	bytes_put_u16(out, 0x2302); /* PSBEND; tracing is off here, so no FUP */
}

static void put_round(const struct make_bundle *how, struct bytes_out *out, unsigned round)
{
	bool taken = round % 2 == 1;

	put_tsc(out, MAKE_TSC + (uint64_t)round * MAKE_ROUND);
	/* TIP.PGE, or TIP out of the kernel. */
	put_ip(out, how->kernel && round > 0 ? 0x0d : 0x11,
	       round == 0 ? MAKE_MAIN : MAKE_MAIN + 13);
	if (how->plain_returns) {
		put_ip(out, 0x0d, MAKE_MAIN + 5); /* TIP */
		bytes_put_u8(out, taken ? 0x06 : 0x04);
	} else {
		bytes_put_u8(out, taken ? 0x0e : 0x0c); /* TNT: ret, je */
	}
	put_tsc(out, MAKE_TSC + (uint64_t)round * MAKE_ROUND + MAKE_ROUND / 2);
	if (how->kernel)
		put_ip(out, 0x0d, MAKE_KERNEL);
	else
		bytes_put_u8(out, 0x01); /* TIP.PGD without IP: to the kernel */
}

void make_trace(const struct make_bundle *how, struct bytes_out *out)
{
	unsigned i;

	for (i = 0; i < how->empty_bytes; i++)
		bytes_put_u8(out, 0);
	for (i = 0; i < how->rounds; i++) {
		bool psb = i == 0 ? !how->no_psb
				  : how->rounds_per_psb > 0 && i % how->rounds_per_psb == 0;

		if (psb)
			put_psb(out, MAKE_TSC + (uint64_t)i * MAKE_ROUND);
		if (how->overflow && i == how->rounds / 2)
			bytes_put_u16(out, 0xf302);
		put_round(how, out, i);
		if (how->rounds_per_turn > 0 && (i + 1) % how->rounds_per_turn == 0)
			for (unsigned k = 0; k < how->quiet_psbs; k++)
				put_psb(out, MAKE_TSC + (uint64_t)i * MAKE_ROUND + 600 + 5 * k);
	}
	if (how->in_leaf) {
		put_ip(out, 0x11, MAKE_MAIN + 13); /* TIP.PGE */
		put_ip(out, 0x1d, MAKE_LEAF + 2);  /* FUP: interrupted there */
		bytes_put_u8(out, 0x01);	   /* TIP.PGD */
	}
}

static const struct make_elf layout = {
	.base = MAKE_BASE,
	.entry = MAKE_MAIN,
	.size = FILE_SIZE,
	.text = MAIN_AT,
	.text_size = LEAF_AT + sizeof(leaf_code) - MAIN_AT,
	.symtab = SYMTAB_AT,
	.n_symbols = 4,
	.strtab = STRTAB_AT,
	.strtab_size = sizeof(names),
	.shstr = SHSTR_AT,
	.shstr_size = sizeof(section_names),
	.headers = SHDR_AT,
	.n_sections = N_SECT,
};

static void add_note(uint8_t *file)
{
	make_elf_section(file, &layout, 5,
			 &(Elf64_Shdr){.sh_name = MAKE_ELF_NAMES,
				       .sh_type = SHT_NOTE,
				       .sh_flags = SHF_ALLOC,
				       .sh_addr = MAKE_BASE + NOTE_AT,
				       .sh_offset = NOTE_AT,
				       .sh_size = 36,
				       .sh_addralign = 4});
}

static void add_symbol(uint8_t *file, unsigned i, uint32_t name, uint64_t at, uint64_t size)
{
	const Elf64_Sym symbol = {.st_name = name,
				  .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				  .st_shndx = 1,
				  .st_value = MAKE_BASE + at,
				  .st_size = size};

	memcpy(file + SYMTAB_AT + i * sizeof(symbol), &symbol, sizeof(symbol));
}

void make_program(struct bytes_out *out)
{
	const Elf64_Nhdr note = {.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID};
	uint8_t *file = bytes_put_space(out, FILE_SIZE);

	if (file == NULL)
		return;
	memset(file, 0, FILE_SIZE);
	make_elf_begin(file, &layout);
	memcpy(file + MAIN_AT, main_code, sizeof(main_code));
	memcpy(file + LEAF_AT, leaf_code, sizeof(leaf_code));
	memcpy(file + NOTE_AT, &note, sizeof(note));
	memcpy(file + NOTE_AT + sizeof(note), "GNU", 4);
	memset(file + NOTE_AT + sizeof(note) + 4, 0xab, 20);
	add_symbol(file, 1, 1, MAIN_AT, TAIL_AT - MAIN_AT);
	add_symbol(file, 3, 11, TAIL_AT, MAIN_AT + sizeof(main_code) - TAIL_AT);
	add_symbol(file, 2, 6, LEAF_AT, sizeof(leaf_code));
	memcpy(file + STRTAB_AT, names, sizeof(names));
	memcpy(file + SHSTR_AT, section_names, sizeof(section_names));
	make_elf_sections(file, &layout);
	add_note(file);
}

/* Adds the second copy, and has the ELF header and the segment of the first lead to it. */
static void add_second(struct bytes_out *program, unsigned at)
{
	const Elf64_Off headers = at + layout.headers, segment = at;
	const size_t first = program->size;
	uint8_t *more = bytes_put_space(program, at);

	if (more == NULL)
		return;
	memset(more, 0, at - first);
	memcpy(program->data + at, program->data, first);
	memcpy(program->data + offsetof(Elf64_Ehdr, e_shoff), &headers, sizeof(headers));
	memcpy(program->data + sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_offset), &segment,
	       sizeof(segment));
}

static void put_record(struct bytes_out *out, struct perfrecord *record, uint32_t cpu)
{
	uint8_t buffer[8192];
	size_t size;

	record->pid = MAKE_PID;
	record->tid = MAKE_TID;
	record->cpu = cpu;
	if (perfrecord_compose(record, buffer, sizeof(buffer), &size) != 0)
		abort();
	bytes_put_block(out, buffer, size);
}

static void put_mapping(const struct make_bundle *how, struct bytes_out *out)
{
	struct perfrecord map = {.type = PERF_RECORD_MMAP2};

	map.u.mmap2.pid = MAKE_PID;
	map.u.mmap2.tid = MAKE_TID;
	map.u.mmap2.addr = MAKE_BASE;
	map.u.mmap2.len = 0x1000;
	map.u.mmap2.pgoff = how->second_at;
	map.u.mmap2.maj = 8;
	map.u.mmap2.min = 1;
	map.u.mmap2.ino = 99;
	map.u.mmap2.prot = PROT_READ | PROT_EXEC;
	map.u.mmap2.flags = MAP_PRIVATE;
	map.u.mmap2.filename = MAKE_PATH;
	put_record(out, &map, 0);
}

/* As the kernel records a switch: the leaving thread names the next one, then the next thread names
 * the one that left. Tid 0 is idle. */
static void put_switch(struct bytes_out *out, uint32_t cpu, uint64_t time, const uint32_t tids[2])
{
	uint8_t buffer[256];
	size_t i, size;

	for (i = 0; i < 2; i++) {
		struct perfrecord r = {.type = PERF_RECORD_SWITCH_CPU_WIDE,
				       .misc = i == 0 ? PERF_RECORD_MISC_SWITCH_OUT : 0,
				       .time = time + i,
				       .cpu = cpu,
				       .pid = tids[i] ? MAKE_PID : 0,
				       .tid = tids[i]};

		r.u.context_switch.next_prev_pid = tids[1 - i] ? MAKE_PID : 0;
		r.u.context_switch.next_prev_tid = tids[1 - i];
		if (perfrecord_compose(&r, buffer, sizeof(buffer), &size) != 0)
			abort();
		bytes_put_block(out, buffer, size);
	}
}

static void put_lost(const struct make_bundle *how, struct bytes_out *out, uint32_t cpu,
		     unsigned round)
{
	struct perfrecord lost = {.type = PERF_RECORD_LOST,
				  .time = MAKE_TSC + (uint64_t)round * MAKE_ROUND + 600};

	lost.u.lost.lost = 3;
	if (how->lost_after == round + 1)
		put_record(out, &lost, cpu);
}

static void put_turns(const struct make_bundle *how, struct bytes_out *out, uint32_t cpu)
{
	unsigned round;

	for (round = 0; round < how->rounds; round++) {
		uint64_t time = MAKE_TSC + (uint64_t)round * MAKE_ROUND + 750;
		uint32_t odd = how->rounds_per_turn ? round / how->rounds_per_turn % 2 : 0;

		put_lost(how, out, cpu, round);
		if (how->rounds_per_turn == 0 || (round + 1) % how->rounds_per_turn != 0)
			continue;
		put_switch(out, cpu, time, (const uint32_t[]){MAKE_TID + odd, 0});
		put_switch(out, cpu, time + 50, (const uint32_t[]){0, MAKE_TID + 1 - odd});
	}
}

static void put_second_comm(struct bytes_out *out)
{
	struct perfrecord comm = {.type = PERF_RECORD_COMM};

	comm.u.comm.pid = MAKE_PID;
	comm.u.comm.tid = MAKE_TID + 1;
	comm.u.comm.comm = "second";
	put_record(out, &comm, 0);
}

void make_sideband(const struct make_bundle *how, struct bytes_out *out)
{
	struct perfrecord comm = {.type = PERF_RECORD_COMM};
	struct perfrecord start = {.type = PERF_RECORD_ITRACE_START, .time = MAKE_TSC - 10};
	struct perfrecord in = {.type = PERF_RECORD_SWITCH_CPU_WIDE, .time = MAKE_TSC - 5};
	uint32_t cpu;

	comm.u.comm.pid = MAKE_PID;
	comm.u.comm.tid = MAKE_TID;
	comm.u.comm.comm = "loop\x1b[1m";
	put_record(out, &comm, 0);
	put_mapping(how, out);
	start.u.itrace_start.pid = MAKE_PID;
	start.u.itrace_start.tid = MAKE_TID;
	for (cpu = 0; cpu < MAX_OF(how->n_cpus, 1u); cpu++)
		put_record(out, &start, cpu);
	for (cpu = 0; cpu < MAX_OF(how->n_cpus, 1u); cpu++)
		put_record(out, &in, cpu);
	if (how->rounds_per_turn > 0)
		put_second_comm(out);
	for (cpu = 0; cpu < MAX_OF(how->n_cpus, 1u); cpu++)
		put_turns(how, out, cpu);
	for (size_t i = 0; i < how->n_records; i++) {
		uint8_t buffer[8192];
		size_t size;

		if (perfrecord_compose(&how->records[i], buffer, sizeof(buffer), &size) != 0)
			abort();
		bytes_put_block(out, buffer, size);
	}
}

static uint64_t stop_time(const struct make_bundle *how)
{
	return MAKE_TSC + (uint64_t)how->rounds * MAKE_ROUND;
}

static int describe_program(struct manifest *m, const struct make_bundle *how, uint64_t size)
{
	struct manifest_image *image = manifest_add_image(m);
	struct manifest_process *process;
	unsigned i;

	for (i = 0; i < how->more_processes; i++) {
		process = manifest_add_process(m);
		if (process == NULL)
			return -ENOMEM;
		*process = (struct manifest_process){.pid = 10000 + i,
						     .ppid = MANIFEST_ABSENT,
						     .start_ns = i,
						     .uid = MANIFEST_ABSENT};
	}
	process = manifest_add_process(m);
	if (image == NULL || process == NULL)
		return -ENOMEM;
	image->path = strdup(MAKE_PATH);
	image->maj = 8;
	image->min = 1;
	image->ino = 99;
	image->size = how->no_image || how->elsewhere ? 0 : size;
	image->elsewhere = how->elsewhere;
	image->file_size = how->elsewhere ? size : MANIFEST_ABSENT;
	image->build_id = how->build_id ? strdup(how->build_id) : NULL;
	image->missing = how->no_image ? strdup("deleted before it could be opened") : NULL;
	*process = (struct manifest_process){
		.pid = MAKE_PID, .ppid = 1, .start_ns = MANIFEST_ABSENT, .uid = 1000};
	process->exe = strdup(MAKE_PATH);
	process->cmdline = strdup("loop --for ever");
	process->cgroup = strdup("/system.slice/loop.service");
	return how->note != NULL ? manifest_add_note(m, "untraced-exec", 1, how->note) : 0;
}

static bool is_traced(const struct make_bundle *how, uint32_t cpu)
{
	return !how->untraced || cpu < how->first_untraced;
}

/* As the recorder describes a CPU that was not frozen. */
static void describe_untraced(struct manifest_cpu *cpu, const struct make_bundle *how)
{
	cpu->state = strdup(how->state);
	cpu->why = how->why != NULL ? strdup(how->why) : NULL;
	cpu->stop_ns = cpu->stop_order = MANIFEST_ABSENT;
	if (how->kept)
		return;
	cpu->ring_bytes = cpu->bytes = 0;
	cpu->copy_ns = MANIFEST_ABSENT;
}

static void describe_trace(struct manifest *m, const struct make_bundle *how)
{
	if (!how->untraced)
		return;
	m->preset = strdup("std");
	m->pt_attr = strdup("type=8 config=0x300e601");
	m->sideband_attr = strdup("type=1 config=0x9");
	m->sideband_missing = strdup("text_poke,cgroup");
	m->sizes_note = strdup("4 MiB a CPU instead of 8");
}

static int describe(struct manifest *m, const struct make_bundle *how, uint64_t trace,
		    uint64_t size)
{
	uint32_t i;

	m->id = strdup("synthetic");
	m->version = strdup("0");
	m->trigger_kind = strdup("offline");
	m->source = strdup("emulated");
	m->unrecorded_cpus = 0;
	m->have_clock = !how->monotonic;
	m->clock_is_monotonic = how->monotonic;
	m->time_mult = 1;
	m->time_shift = 0;
	m->trace_user = true;
	m->trace_kernel = how->kernel;
	m->mtc_period = UINT32_MAX;
	m->max_nonturbo_ratio = how->wild != 0 ? 32 : 0;
	m->perf_ns = stop_time(how) - how->stop_late;
	m->last_ns = how->last_ns != 0 ? how->last_ns : MANIFEST_ABSENT;
	for (i = 0; i < MAX_OF(how->n_cpus, 1u); i++) {
		struct manifest_cpu *cpu = manifest_add_cpu(m);

		if (cpu == NULL)
			return -ENOMEM;
		cpu->cpu = i;
		cpu->ring_bytes = 1 << 20;
		cpu->bytes = trace;
		cpu->stop_ns = stop_time(how) + how->no_answer;
		cpu->stop_timeout = how->no_answer != 0;
		cpu->copy_ns = 12;
		cpu->aux_flags = how->aux_flags;
		cpu->lost_records = 0;
		cpu->state = strdup("tracing");
		cpu->stop_order = i;
		if (is_traced(how, i))
			continue;
		free(cpu->state);
		describe_untraced(cpu, how);
	}
	describe_trace(m, how);
	return describe_program(m, how, size);
}

static int write_members(const struct make_bundle *how, struct bundle_writer *w, struct manifest *m)
{
	CLEANUP(bytes_out_done) struct bytes_out trace, program, sideband;
	char name[32];
	uint32_t i;
	int r;

	bytes_out_init(&trace, 64 << 20);
	bytes_out_init(&program, 1 << 20);
	bytes_out_init(&sideband, 4 << 20);
	if (how->wild != 0) {
		make_wild_trace(how->wild, MAKE_BASE, how->rounds, MAKE_TSC, MAKE_ROUND, &trace);
		make_wild_program(how->wild, MAKE_BASE, &program);
	} else {
		make_trace(how, &trace);
		make_program(&program);
	}
	if (how->second_at != 0)
		add_second(&program, how->second_at);
	if (!how->no_sideband)
		make_sideband(how, &sideband);
	r = describe(m, how, trace.size, program.size);
	for (i = 0; i < m->n_cpus && r == 0; i++) {
		snprintf(name, sizeof(name), "cpu%u.pt", i);
		r = bundle_write_member(w, name, trace.data, m->cpus[i].bytes);
	}
	if (r == 0)
		r = bundle_write_member(w, "sideband", sideband.data, sideband.size);
	if (r == 0 && !how->no_image && !how->elsewhere)
		r = bundle_write_member(w, "images/0", program.data, program.size);
	return r == 0 ? bundle_write_end(w, m) : r;
}

int make_bundle(const struct make_bundle *how, int fd)
{
	struct bundle_writer w;
	struct manifest m;
	int r;

	manifest_init(&m);
	bundle_writer_init(&w, fd);
	r = write_members(how, &w, &m);
	manifest_done(&m);
	return r;
}
