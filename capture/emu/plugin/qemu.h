/*
 * Both plugins get their arguments, symbols of the emulator's program and registers here. Debian's
 * QEMU exports the symbols, because it is built with modules.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Numbers of gdb's i386:x86-64: general registers 0 to 15, rip, eflags, 6 selectors, 3 bases, cr0,
 * cr2, cr3. */
#define QEMU_RDI    5
#define QEMU_RSP    7
#define QEMU_RIP    16
#define QEMU_EFLAGS 17
#define QEMU_CS	    18
#define QEMU_CR2    28
#define QEMU_CR3    29

/* TO: the address of a pointer to a function or variable. */
struct qemu_symbol {
	const char *name;
	void *to;
};

/* Looks the N symbols up, and those of this file. NULL, or the name of a symbol that this QEMU does
 * not export. */
const char *qemu_bind(const struct qemu_symbol *symbols, size_t n);
/* QEMU's CPU number INDEX; NULL: there is none. */
void *qemu_cpu(unsigned int index);
/* A register of CPU; 0 if CPU is NULL. QEMU keeps general registers elsewhere within a block. */
uint64_t qemu_register(void *cpu, int number);

/* The value of the argument NAME=VALUE, borrowed; NULL: there is none. */
const char *qemu_argument(int argc, char **argv, const char *name);
