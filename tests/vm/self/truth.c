/*
 * A TCG plugin of QEMU's system emulator that logs each instruction of traced CPUs (truthlog.h).
 * Argument: dir=DIRECTORY. Knows of the software PMU only how tracing starts and stops: the NOPs of
 * bell.h, and the operation in the struct bell, which lies in the RAM file, ram=PATH. With
 * user-only=1, the kernel's instructions are not looked at one by one: several times as fast.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/emu/plugin/qemu.h"
#include "capture/emu/plugin/qemu_api.h"
#include "capture/emu/system/asleep.h"
#include "capture/emu/system/bell.h"
#include "capture/emu/system/vm.h"
#include "tests/vm/self/truthlog.h"

#define MAX_CPUS 64u
#define LOW_48	 0xffffffffffffull
#define SIZE	 ((size_t)TRUTHLOG_CHUNK * TRUTHLOG_CHUNKS)

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

struct instruction {
	uint64_t ip;
	uint8_t size;
	bool repeated; /* REP with a string instruction */
};

struct cpu {
	bool on;
	bool os, user; /* IA32_RTIT_CTL.OS and .User */
	bool kernel;   /* the last instruction was the kernel's */
	struct bell_range ranges[BELL_RANGES];
	uint64_t ranges_ctl; /* the ADDRn_CFG */
	bool inside;	     /* of the filter ranges, or there are none */
	bool stopped;	     /* TraceStop */
	uint64_t at, next;   /* the last instruction, and behind it */
	uint64_t current_task, direct_map;
	uint32_t tid_offset;
	unsigned int files;
	uint8_t *file; /* mapped */
	uint8_t *chunk;
	uint64_t chunks, used, last; /* last: address that the next step counts from */
	uint64_t previous;	     /* instruction */
	unsigned int untimed;	     /* instructions until the next one whose time is logged */
};

static struct cpu cpus[MAX_CPUS];
static const char *dir, *ram;
static bool user_only;
static FILE *bells;

static void next_chunk(struct cpu *c)
{
	struct truthlog_chunk *head;

	c->chunk = c->file + c->chunks % TRUTHLOG_CHUNKS * TRUTHLOG_CHUNK;
	head = (struct truthlog_chunk *)c->chunk;
	*head = (struct truthlog_chunk){TRUTHLOG_MAGIC, c->chunks++, sizeof(*head)};
	c->used = sizeof(*head);
	c->last = 0;
}

static void put(struct cpu *c, uint64_t ip)
{
	uint64_t step = ip - c->last;

	if (c->used + TRUTHLOG_ITEM > TRUTHLOG_CHUNK)
		next_chunk(c);
	if (c->last != 0 && step >= 1 && step <= 15) {
		c->chunk[c->used++] = (uint8_t)step;
	} else {
		c->chunk[c->used] = 0;
		memcpy(c->chunk + c->used + 1, &ip, 8);
		c->used += TRUTHLOG_ITEM;
	}
	c->previous = c->last = ip;
	((struct truthlog_chunk *)c->chunk)->used = c->used;
}

/* Logs the thread to which the kernel returned. Reads RAM: with page table isolation, the addresses
 * are not mapped any more. */
static void put_thread(struct cpu *c)
{
	const uint64_t *task = vm_ram(c->current_task - c->direct_map, sizeof(*task));
	const uint32_t *tid =
		task ? vm_ram(*task - c->direct_map + c->tid_offset, sizeof(*tid)) : NULL;

	if (!tid)
		return;
	put(c, TRUTHLOG_THREAD | *tid);
	c->last = 0;
}

/* KIND: TRUTHLOG_TIME or TRUTHLOG_ENTRY. */
static void put_time(struct cpu *c, uint64_t kind)
{
	c->untimed = TRUTHLOG_STEP;
	put(c, kind | (LOW_48 & vm_tsc()));
	c->last = 0;
}

static unsigned int range_kind(const struct cpu *c, unsigned int i)
{
	return c->ranges_ctl >> (32 + 4 * i) & 15;
}

/* Taken branches and events enter and leave address ranges, sequential code does not. A taken
 * branch to the next instruction counts as sequential here. */
static void look_at_ranges(struct cpu *c, uint64_t ip, bool context)
{
	bool filters = false, inside = false;

	for (unsigned int i = 0; i < BELL_RANGES; i++) {
		const bool in = ip >= c->ranges[i].from && ip <= c->ranges[i].to;

		filters |= range_kind(c, i) == 1;
		inside |= range_kind(c, i) == 1 && in;
		c->stopped |= range_kind(c, i) == 2 && in && context;
	}
	c->inside = !filters || inside;
}

static void on_instruction(unsigned int vcpu, void *userdata)
{
	const struct instruction *i = userdata;
	struct cpu *c = &cpus[vcpu];

	const bool kernel = i->ip >> 63, context = kernel ? c->os : c->user;
	const bool enters = c->kernel && !kernel && c->user;

	if (!c->on)
		return;
	if (enters)
		put_thread(c);
	c->kernel = kernel;
	if (c->ranges_ctl != 0 && i->ip != c->next && i->ip != c->at)
		look_at_ranges(c, i->ip, context);
	c->at = i->ip;
	c->next = i->ip + i->size;
	if (!context || !c->inside || c->stopped || (i->repeated && c->previous == i->ip))
		return;
	if (enters && !c->os)
		put_time(c, TRUTHLOG_ENTRY);
	else if (c->untimed-- == 0)
		put_time(c, TRUTHLOG_TIME);
	put(c, i->ip);
}

/* A block of the kernel, which is not traced. */
static void on_kernel(unsigned int vcpu, void *userdata)
{
	struct cpu *c = &cpus[vcpu];

	(void)userdata;
	c->kernel = true;
	c->at = c->next = 0;
}

static void end_file(struct cpu *c)
{
	if (c->file)
		munmap(c->file, SIZE);
	c->file = NULL;
	c->on = false;
}

static bool begin_file(struct cpu *c, unsigned int vcpu)
{
	char path[4096];
	int fd;

	end_file(c);
	snprintf(path, sizeof(path), "%s/cpu%u.%u", dir, vcpu, c->files++);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, (off_t)SIZE) != 0)
		return false;
	c->file = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (c->file == MAP_FAILED) {
		c->file = NULL;
		return false;
	}
	c->chunks = 0;
	c->previous = 0;
	c->untimed = 0;
	next_chunk(c);
	return true;
}

/* This plugin's own work at a bell, in which the CPU executes nothing, does not count as dark. */
static void log_bell(unsigned int vcpu, const char *word)
{
	fprintf(bells, TRUTHLOG_BELL "\n", vcpu, word, vm_tsc());
}

/* The first instruction of a block is the bell's NOP. Runs in front of it. */
static void on_bell(unsigned int vcpu, void *userdata)
{
	struct cpu *c = &cpus[vcpu];
	const struct bell *bell;

	(void)userdata;
	bell = vm_map_ram(ram) == 0 ? vm_ram(vm_rdi(vcpu), sizeof(*bell)) : NULL;
	if (bell && bell->op == BELL_START) {
		log_bell(vcpu, TRUTHLOG_START);
		c->on = begin_file(c, vcpu);
		c->os = bell->ctl & 4;
		c->user = bell->ctl & 8;
		c->ranges_ctl = bell->ctl & 0xffff00000000ull;
		memcpy(c->ranges, bell->ranges, sizeof(c->ranges));
		c->inside = true;
		c->stopped = false;
		c->at = c->next = 0;
		c->kernel = true;
		c->current_task = bell->current_task;
		c->direct_map = bell->direct_map;
		c->tid_offset = bell->tid_offset;
	} else if (bell && bell->op == BELL_STOP) {
		end_file(c);
		log_bell(vcpu, TRUTHLOG_STOP);
	}
	if (!bell || (bell->op == BELL_START && !c->on))
		fprintf(stderr, "truth: no bell, or no file\n");
}

/* Prefixes, then MOVS, CMPS, STOS, LODS, SCAS, INS or OUTS. */
static bool is_repeated(const uint8_t *bytes, size_t size)
{
	bool rep = false;
	size_t i = 0;

	for (; i < size; i++) {
		if (bytes[i] == 0xf2 || bytes[i] == 0xf3)
			rep = true;
		else if (bytes[i] != 0x66 && bytes[i] != 0x67 && (bytes[i] & 0xf0) != 0x40)
			break;
	}
	return rep && i + 1 == size &&
	       ((bytes[i] >= 0xa4 && bytes[i] <= 0xa7) || (bytes[i] >= 0xaa && bytes[i] <= 0xaf) ||
		(bytes[i] >= 0x6c && bytes[i] <= 0x6f));
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	const size_t n = qemu_plugin_tb_n_insns(tb);
	const struct qemu_plugin_insn *first = n > 0 ? qemu_plugin_tb_get_insn(tb, 0) : NULL;

	(void)id;
	if (!first)
		return;
	if (asleep_is_bell(first))
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_bell, QEMU_PLUGIN_CB_NO_REGS, NULL);
	if (user_only && qemu_plugin_insn_vaddr(first) >> 63) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_kernel, QEMU_PLUGIN_CB_NO_REGS, NULL);
		return;
	}
	for (size_t k = 0; k < n; k++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, k);
		const uint8_t *bytes = qemu_plugin_insn_data(insn);
		size_t size = qemu_plugin_insn_size(insn);
		struct instruction *i = malloc(sizeof(*i));

		if (!i)
			abort();
		*i = (struct instruction){qemu_plugin_insn_vaddr(insn), (uint8_t)size,
					  is_repeated(bytes, size)};
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_instruction, QEMU_PLUGIN_CB_NO_REGS,
						       i);
	}
}

static void wake_up(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
}

static void on_first_bell(unsigned int vcpu, void *userdata)
{
	(void)vcpu;
	(void)userdata;
	asleep_end(wake_up);
}

static FILE *open_bells(void)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/bells", dir);
	f = fopen(path, "we");
	if (f)
		setvbuf(f, NULL, _IOLBF, 0);
	return f;
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *dir_given = qemu_argument(argc, argv, "dir"),
		   *ram_given = qemu_argument(argc, argv, "ram");

	dir = dir_given ? strdup(dir_given) : NULL;
	ram = ram_given ? strdup(ram_given) : NULL;
	user_only = qemu_argument(argc, argv, "user-only") != NULL;
	if (!dir || !ram || !info->system_emulation || vm_bind()) {
		fprintf(stderr, "truth: dir=DIRECTORY,ram=FILE\n");
		return -1;
	}
	bells = open_bells();
	if (!bells) {
		perror("truth: bells");
		return -1;
	}
	asleep_begin(id, on_first_bell);
	return 0;
}
