/*
 * The virtual machine as the software PMU sees it: registers, memory and clock, by symbols of the
 * emulator's program. Debian's QEMU exports them, because it is built with modules.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks the symbols up. NULL, or the name of a symbol that this QEMU does not export. */
const char *vm_bind(void);
/* Maps the guest's RAM, which QEMU keeps in the shared file PATH (memory-backend-file, share=on).
 * The file appears after the plugin was loaded. 0 or -errno. */
int vm_map_ram(const char *path);
/* SIZE bytes at a physical address below 2 GiB; NULL: not all of them are RAM. */
void *vm_ram(uint64_t physical, size_t size);
/* Maps N pages of RAM, whose physical addresses PAGES has, to one range of this process. NULL:
 * errno says why. Freed by munmap(). */
uint8_t *vm_map_pages(const uint64_t *pages, size_t n);

/* The functions below are for the thread of CPU VCPU, at the beginning of a block: QEMU keeps
 * general registers elsewhere within a block. */
uint64_t vm_stack_pointer(unsigned int vcpu);
uint64_t vm_rdi(unsigned int vcpu);
uint64_t vm_cr3(unsigned int vcpu);
uint64_t vm_cr2(unsigned int vcpu);
uint64_t vm_flags(unsigned int vcpu);
/* The selector in CS. */
uint16_t vm_cs(unsigned int vcpu);
/* The same for the CPU of the calling thread, also while it translates. */
uint16_t vm_cs_here(void);
/* Copies SIZE bytes at a linear address, as CPU VCPU maps them now. */
bool vm_read(unsigned int vcpu, uint64_t address, void *to, size_t size);
/* The guest's TSC, as RDTSC reads it. Its difference from the host's TSC grows: whenever a host
 * CPU's TSC is behind that of another one, QEMU adds to it (softmmu/cpu-timers.c,
 * cpu_get_ticks_locked()), some microseconds at once on the host where that was measured. */
uint64_t vm_tsc(void);
