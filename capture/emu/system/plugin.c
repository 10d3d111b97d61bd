/*
 * The software PMU of a virtual machine as a TCG plugin: callbacks of QEMU's system emulator, and
 * the bell. Arguments of the plugin: ram=PATH, the file of the guest's RAM, and overflow=BYTES, an
 * overflow of the PMU's internal buffer after each so many bytes.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "capture/emu/plugin/code.h"
#include "capture/emu/plugin/qemu.h"
#include "capture/emu/plugin/qemu_api.h"
#include "capture/emu/system/asleep.h"
#include "capture/emu/system/system.h"
#include "capture/emu/system/vm.h"
#include "proto/base.h"

#define MAX_CPUS  64u
#define MAX_PAGES (1u << 18) /* 1 GiB */
#define USER32_CS 0x23u

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

/* The plugin's only global state. QEMU's callbacks have no argument for it. */
static struct {
	struct system_cpu cpus[MAX_CPUS];
	struct system_idt idt;
	bool idt_known;
	struct code *code;
	const char *ram;
	pthread_mutex_t lock;	  /* of idt */
	_Atomic uint64_t unknown; /* instructions that Zydis does not know */
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void complain(const char *what, const char *why)
{
	fprintf(stderr, "ptsnap-syspmu: %s: %s\n", what, why);
}

static void on_block(unsigned int vcpu, void *userdata)
{
	if (__builtin_expect(vcpu < MAX_CPUS, 1))
		system_before(&plugin.cpus[vcpu], userdata);
}

/* The address of a handler in a gate of the IDT (SDM volume 3, "64-Bit IDT Gate Descriptors"). */
static uint64_t handler_of(const uint8_t *gate)
{
	uint16_t low, middle;
	uint32_t high;

	memcpy(&low, gate, 2);
	memcpy(&middle, gate + 6, 2);
	memcpy(&high, gate + 8, 4);
	return low | (uint64_t)middle << 16 | (uint64_t)high << 32;
}

static bool read_idt(unsigned int vcpu, uint64_t address)
{
	uint8_t gates[SYSTEM_VECTORS * 16];

	if (plugin.idt_known)
		return true;
	if (!vm_read(vcpu, address, gates, sizeof(gates)))
		return false;
	for (unsigned int i = 0; i < SYSTEM_VECTORS; i++) {
		plugin.idt.handler[i] = handler_of(gates + (size_t)i * 16);
		if (plugin.idt.handler[i] != 0)
			code_add_handler(plugin.code, plugin.idt.handler[i]);
	}
	plugin.idt_known = true;
	return true;
}

/* Maps the buffer that BELL names, unless it is mapped already. */
static bool map_buffer(struct system_cpu *c, const struct bell *bell)
{
	const uint64_t n = bell->n_pages;
	const uint64_t *pages;

	if (c->aux && c->buffer == bell->buffer)
		return true;
	if (c->aux)
		munmap(c->aux, c->aux_size);
	c->aux = NULL;
	pages = n <= MAX_PAGES ? vm_ram(bell->pages, n * sizeof(*pages)) : NULL;
	if (!pages || n == 0 || (n & (n - 1)) != 0)
		errno = EINVAL;
	else
		c->aux = vm_map_pages(pages, n);
	if (!c->aux) {
		complain("AUX buffer", strerror(errno));
		return false;
	}
	c->aux_size = n * 4096;
	c->buffer = bell->buffer;
	return true;
}

static enum bell_result start(struct system_cpu *c, const struct bell *bell, uint64_t ip)
{
	bool idt;

	pthread_mutex_lock(&plugin.lock);
	idt = read_idt(c->vcpu, bell->idt);
	pthread_mutex_unlock(&plugin.lock);
	if (!idt)
		complain("IDT", "cannot be read");
	if (!idt || !map_buffer(c, bell))
		return BELL_REFUSED;
	system_start(c, bell, ip);
	return BELL_OK;
}

static enum bell_result answer(struct system_cpu *c, struct bell *bell, uint64_t ip)
{
	switch (bell->op) {
	case BELL_HELLO: return BELL_OK;
	case BELL_START: return start(c, bell, ip);
	case BELL_STOP: system_stop(c, bell, ip); return BELL_OK;
	default: return BELL_REFUSED;
	}
}

/* The bell that VCPU hands over; NULL: complained. */
static struct bell *bell_of(unsigned int vcpu)
{
	int r = vm_map_ram(plugin.ram);
	struct bell *bell = r == 0 ? vm_ram(vm_rdi(vcpu), sizeof(*bell)) : NULL;

	if (!bell)
		complain(plugin.ram, r < 0 ? strerror(-r) : "a bell outside of RAM");
	return bell;
}

/* The block begins with the bell's NOP. */
static void on_bell(unsigned int vcpu, void *userdata)
{
	struct block *b = userdata;
	struct system_cpu *c;
	struct bell *bell;

	if (vcpu >= MAX_CPUS)
		return;
	c = &plugin.cpus[vcpu];
	system_before(c, b);
	bell = bell_of(vcpu);
	if (!bell)
		return;
	bell->result = answer(c, bell, b->ip);
	c->retire.prev = system_follows(c) ? b : &c->retire.none;
}

/* RDTSC is 0f 31, RDTSCP 0f 01 f9. */
static bool reads_clock(const uint8_t *bytes, size_t size)
{
	return (size == 2 && bytes[0] == 0x0f && bytes[1] == 0x31) ||
	       (size == 3 && bytes[0] == 0x0f && bytes[1] == 0x01 && bytes[2] == 0xf9);
}

/* CLI, STI or POPF; prefixes are possible, but for POPF's they mean nothing. */
static bool writes_iflag(const uint8_t *bytes, size_t size)
{
	const uint8_t last = bytes[size - 1];

	return (size == 1 && (last == 0xfa || last == 0xfb)) ||
	       (last == 0x9d && (size == 1 || (size == 2 && bytes[0] == 0x66)));
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	struct code_block in = {.n = MIN_OF(qemu_plugin_tb_n_insns(tb), (size_t)CODE_MAX_BLOCK)};
	struct qemu_plugin_insn *insn = NULL;
	struct block *b;
	bool known;

	(void)id;
	if (in.n == 0)
		return;
	in.ip = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 0));
	in.compat = (int64_t)in.ip >= 0 && vm_cs_here() == USER32_CS;
	for (size_t i = 0; i < in.n; i++) {
		insn = qemu_plugin_tb_get_insn(tb, i);
		in.length[i] = (uint8_t)qemu_plugin_insn_size(insn);
		in.reads_clock |= reads_clock(qemu_plugin_insn_data(insn), in.length[i]);
		if (in.length[i] > 0 && writes_iflag(qemu_plugin_insn_data(insn), in.length[i]))
			in.iflag = (uint16_t)(i + 1);
	}
	in.last_bytes = qemu_plugin_insn_data(insn);
	b = code_add(plugin.code, &in, &known);
	if (!known)
		atomic_fetch_add(&plugin.unknown, 1);
	if (b)
		qemu_plugin_register_vcpu_tb_exec_cb(
			tb, asleep_is_bell(qemu_plugin_tb_get_insn(tb, 0)) ? on_bell : on_block,
			QEMU_PLUGIN_CB_NO_REGS, b);
}

static void on_idle(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	if (vcpu < MAX_CPUS)
		system_idle(&plugin.cpus[vcpu]);
}

static void on_resume(qemu_plugin_id_t id, unsigned int vcpu)
{
	(void)id;
	if (vcpu < MAX_CPUS)
		system_awake(&plugin.cpus[vcpu]);
}

static void on_end(qemu_plugin_id_t id, void *userdata)
{
	(void)id;
	(void)userdata;
	for (unsigned int i = 0; i < MAX_CPUS; i++) {
		const struct system_cpu *c = &plugin.cpus[i];

		if (c->unexplained > 0)
			fprintf(stderr,
				"ptsnap-syspmu: CPU %u: %llu transfers not explained, the first from "
				"0x%llx to 0x%llx\n",
				i, (unsigned long long)c->unexplained,
				(unsigned long long)c->first_from, (unsigned long long)c->first_to);
	}
}

static void wake_up(qemu_plugin_id_t id)
{
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_vcpu_idle_cb(id, on_idle);
	qemu_plugin_register_vcpu_resume_cb(id, on_resume);
	qemu_plugin_register_atexit_cb(id, on_end, NULL);
}

static void on_first_bell(unsigned int vcpu, void *userdata)
{
	struct bell *bell = bell_of(vcpu);

	(void)userdata;
	if (!bell)
		return;
	bell->result = bell->op == BELL_HELLO ? BELL_OK : BELL_REFUSED;
	if (bell->op == BELL_HELLO)
		asleep_end(wake_up);
}

static int refuse(const char *what, const char *why)
{
	complain(what, why);
	return -1;
}

static bool read_number(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno == 0 && text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
	const char *ram = qemu_argument(argc, argv, "ram"), *missing = vm_bind();
	const char *overflow = qemu_argument(argc, argv, "overflow");
	uint64_t overflow_bytes = 0;

	if (missing)
		return refuse("this QEMU does not export a symbol that is needed", missing);
	if (!info->system_emulation || strcmp(info->target_name, "x86_64") != 0)
		return refuse(info->target_name, "only qemu-system-x86_64 is supported");
	if (!ram)
		return refuse("ram=PATH", "missing argument");
	if (overflow && !read_number(overflow, &overflow_bytes))
		return refuse("overflow=BYTES", overflow);
	plugin.ram = strdup(ram);
	plugin.code = code_new();
	if (!plugin.ram || !plugin.code)
		return refuse("start", strerror(ENOMEM));
	for (unsigned int i = 0; i < MAX_CPUS; i++) {
		if (system_cpu_init(&plugin.cpus[i], i, &plugin.idt) < 0)
			return refuse("start", strerror(ENOMEM));
		plugin.cpus[i].overflow_bytes = overflow_bytes;
	}
	asleep_begin(id, on_first_bell);
	return 0;
}
