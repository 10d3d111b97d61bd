/*
 * What the plugin API does not give: the guest's memory, page flags, stack pointer. By symbols that
 * Debian's QEMU exports because it is built with modules.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* QEMU's numbers of CPUs lie below. */
#define GUEST_MAX_VCPUS 16384u

#define GUEST_PAGE_READ	 1
#define GUEST_PAGE_WRITE 2
#define GUEST_PAGE_EXEC	 4

/* Looks the symbols up. NULL; or the name of the first one that this QEMU does not export. */
const char *guest_bind(void);

/* Through the kernel: a bad address gives false instead of a fault. */
bool guest_read(uint64_t address, void *to, size_t size);
bool guest_write(uint64_t address, const void *from, size_t size);
/* Address on the host of the guest's address, and back. */
uint64_t guest_to_host(uint64_t address);
uint64_t guest_from_host(uint64_t address);
/* GUEST_PAGE_* of the page at ADDRESS as the guest asked for it; 0: not a guest's page. */
int guest_page_flags(uint64_t address);
/* RSP of QEMU's CPU VCPU, which must be the caller's own, at the beginning of a block; RIP while it
 * runs no guest code. */
uint64_t guest_stack_pointer(unsigned int vcpu);
uint64_t guest_instruction_pointer(unsigned int vcpu);
/* The path of the program that QEMU was started with. */
const char *guest_program(void);
/* FN runs soon in VCPU's thread, between two blocks and outside of the code that QEMU runs for the
 * guest: there a thread may wait. */
void guest_defer(unsigned int vcpu, void (*fn)(void *cpu, void *data), void *data);

/* The virtual CPUs that live, for guest_forked. */
void guest_cpu_began(unsigned int vcpu);
void guest_cpu_ended(unsigned int vcpu);
/* In a forked child, at its first return from a system call: QEMU 7.2 forgets that the other
 * threads' CPUs are gone and aborts as soon as the child makes a thread
 * (qemu_plugin_vcpu_init_hook); telling it mends that. SELF is the caller's CPU. */
void guest_forked(unsigned int self);
