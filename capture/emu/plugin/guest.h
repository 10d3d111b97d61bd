/*
 * The guest's memory, page flags, mappings and registers, which the plugin API does not give.
 * Debian's QEMU exports the needed symbols because it is built with modules.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/emu/machine/vcpu.h"

/* Upper bound of QEMU's CPU numbers; threads beyond run untraced. */
#define GUEST_MAX_VCPUS 16384u

#define GUEST_PAGE_READ	 1
#define GUEST_PAGE_WRITE 2
#define GUEST_PAGE_EXEC	 4

/* Looks the symbols up. Returns NULL, or the name of a symbol that this QEMU does not export. */
const char *guest_bind(void);

/* Copies SIZE bytes from or to the guest. The kernel copies, so that a bad address returns false
 * instead of causing a fault. */
bool guest_read(uint64_t address, void *to, size_t size);
bool guest_write(uint64_t address, const void *from, size_t size);
/* Converts a guest address to a host address, and back. */
uint64_t guest_to_host(uint64_t address);
uint64_t guest_from_host(uint64_t address);
/* GUEST_PAGE_* permissions that the guest gave to the page at ADDRESS. 0: no page of the guest. */
int guest_page_flags(uint64_t address);
/* RSP of QEMU's CPU VCPU, valid at the beginning of a block; RIP, valid while the CPU runs no guest
 * code. The CPU must be the calling thread's. 0: no such CPU. */
uint64_t guest_stack_pointer(unsigned int vcpu);
uint64_t guest_instruction_pointer(unsigned int vcpu);
/* Path of the program that QEMU was started with. */
const char *guest_program(void);
/* Calls FN soon in VCPU's thread, between two blocks and outside of QEMU's execution of guest code.
 * A thread may wait in FN. */
void guest_defer(unsigned int vcpu, void (*fn)(void *cpu, void *data), void *data);

/* A virtual CPU begins or ends; guest_forked() needs the list. */
void guest_cpu_began(unsigned int vcpu);
void guest_cpu_ended(unsigned int vcpu);
/* Call in a forked child, at its first return from a system call. QEMU 7.2 does not remove the CPUs
 * of the parent's other threads from its table of plugin CPUs, and aborts when the child makes a
 * thread (qemu_plugin_vcpu_init_hook). This removes them. SELF: the caller's CPU. */
void guest_forked(unsigned int self);

typedef void (*guest_mapping_fn)(void *userdata, const struct sideband_mapping *m);

/*
 * Calls FN for each range of executable pages of one mapping with the same permissions in [BEGIN,
 * END), all in guest addresses. FLAGS: of the machine's head (EMURING_BUILD_ID). 0 or -errno.
 *
 * /proc/self/maps has the files, but no mapping in it is executable (QEMU maps guest code as
 * readable data), and it also lists the emulator's own memory. QEMU's page flags have the
 * permissions that the guest asked for.
 */
int guest_mappings(uint64_t begin, uint64_t end, uint32_t flags, guest_mapping_fn fn,
		   void *userdata);
