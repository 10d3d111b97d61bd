/*
 * The guest's memory, page flags and registers, by symbols of the emulator's program.
 */
#include "capture/emu/plugin/guest.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* Register numbers of gdb: rax rbx rcx rdx rsi rdi rbp rsp, r8 to r15, rip. */
#define GDB_RSP 7
#define GDB_RIP 16

/* GByteArray of glib. */
struct byte_array {
	uint8_t *data;
	unsigned int len;
};

static __thread struct byte_array *scratch;

/* Functions and variables of the emulator's program. */
static struct {
	uintptr_t *guest_base;
	int (*page_get_flags)(uint64_t address);
	void *(*get_cpu)(int index);
	int (*read_register)(void *cpu, struct byte_array *to, int n);
	void (*vcpu_exit_hook)(void *cpu);
	struct byte_array *(*array_new)(void);
	struct byte_array *(*array_set_size)(struct byte_array *a, unsigned int n);
	void (*async_run)(void *cpu, void (*fn)(void *cpu, void *data), void *data);
	const char **exec_path;
	_Atomic(void *) cpus[GUEST_MAX_VCPUS];
} qemu;

const char *guest_bind(void)
{
	const struct {
		const char *name;
		void *to;
	} symbols[] = {
		{"guest_base", &qemu.guest_base},
		{"page_get_flags", &qemu.page_get_flags},
		{"qemu_get_cpu", &qemu.get_cpu},
		{"x86_cpu_gdb_read_register", &qemu.read_register},
		{"qemu_plugin_vcpu_exit_hook", &qemu.vcpu_exit_hook},
		{"async_run_on_cpu", &qemu.async_run},
		{"exec_path", &qemu.exec_path},
		{"g_byte_array_new", &qemu.array_new},
		{"g_byte_array_set_size", &qemu.array_set_size},
	};

	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *address = dlsym(RTLD_DEFAULT, symbols[i].name);

		if (!address)
			return symbols[i].name;
		*(void **)symbols[i].to = address;
	}
	return NULL;
}

uint64_t guest_to_host(uint64_t address)
{
	return address + *qemu.guest_base;
}

uint64_t guest_from_host(uint64_t address)
{
	return address - *qemu.guest_base;
}

bool guest_read(uint64_t address, void *to, size_t size)
{
	struct iovec local = {to, size};
	struct iovec remote = {(void *)guest_to_host(address), size};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

bool guest_write(uint64_t address, const void *from, size_t size)
{
	struct iovec local = {(void *)from, size};
	struct iovec remote = {(void *)guest_to_host(address), size};

	return process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == (ssize_t)size;
}

int guest_page_flags(uint64_t address)
{
	return qemu.page_get_flags(address);
}

static uint64_t read_register(unsigned int vcpu, int number)
{
	void *cpu = qemu.get_cpu((int)vcpu);
	uint64_t value = 0;

	if (!scratch)
		scratch = qemu.array_new();
	qemu.array_set_size(scratch, 0);
	if (!cpu || qemu.read_register(cpu, scratch, number) != 8)
		return 0;
	__builtin_memcpy(&value, scratch->data, 8);
	return value;
}

uint64_t guest_stack_pointer(unsigned int vcpu)
{
	return read_register(vcpu, GDB_RSP);
}

uint64_t guest_instruction_pointer(unsigned int vcpu)
{
	return read_register(vcpu, GDB_RIP);
}

const char *guest_program(void)
{
	return *qemu.exec_path;
}

void guest_defer(unsigned int vcpu, void (*fn)(void *cpu, void *data), void *data)
{
	void *cpu = qemu.get_cpu((int)vcpu);

	if (cpu)
		qemu.async_run(cpu, fn, data);
}

void guest_cpu_began(unsigned int vcpu)
{
	if (vcpu < GUEST_MAX_VCPUS)
		qemu.cpus[vcpu] = qemu.get_cpu((int)vcpu);
}

void guest_cpu_ended(unsigned int vcpu)
{
	if (vcpu < GUEST_MAX_VCPUS)
		qemu.cpus[vcpu] = NULL;
}

void guest_forked(unsigned int self)
{
	for (unsigned int i = 0; i < GUEST_MAX_VCPUS; i++) {
		void *cpu = qemu.cpus[i];

		if (i == self || !cpu)
			continue;
		qemu.cpus[i] = NULL;
		qemu.vcpu_exit_hook(cpu);
	}
}
