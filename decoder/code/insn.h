/*
 * One x86 instruction: its length, its kind of branch, and its target.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "decoder/packet/packet.h"

enum insn_class {
	INSN_OTHER,
	INSN_COND, /* jcc, loop, jrcxz */
	INSN_JUMP,
	INSN_CALL,
	INSN_JUMP_IND,
	INSN_CALL_IND,
	INSN_RET,
	INSN_FAR,     /* far call, jump and return, iret, sysret, sysexit, vmcall, ... */
	INSN_SYSCALL, /* syscall, sysenter, int n, int3, int1, into */
	INSN_VMENTRY, /* vmlaunch, vmresume */
	/* No branches, but a trace may say something of them: */
	INSN_CR3, /* mov to cr3: tracing may end behind it */
	INSN_VMPTRLD,
	INSN_PTWRITE,
};

struct insn {
	uint64_t target; /* of COND, JUMP, CALL */
	uint8_t size;
	uint8_t class; /* enum insn_class */
};

#define INSN_MAX_SIZE 15

/* Zydis' decoders, one for each mode. */
struct insn_reader;
/* NULL: no memory. */
struct insn_reader *insn_reader_new(void);
void insn_reader_free(struct insn_reader *r);

/* Reads the instruction that begins at BYTES and lies at IP. 0; INSN_SHORT: N bytes are not enough
 * for it; INSN_BAD: there is no instruction. */
#define INSN_SHORT 1
#define INSN_BAD   2
int insn_read(const struct insn_reader *r, enum insn_mode mode, uint64_t ip, const uint8_t *bytes,
	      size_t n, struct insn *ret);
/* The same without the tables of insn_quick.c. Tests compare the tables with this function. */
int insn_ask(const struct insn_reader *r, enum insn_mode mode, uint64_t ip, const uint8_t *bytes,
	     size_t n, struct insn *ret);

/* A straight run: only its last instruction may have another class than INSN_OTHER. */
struct insn_run {
	uint8_t *sizes; /* of each instruction; the caller's room for MAX of them */
	size_t max;
	size_t n, bytes;  /* instructions, and how long they are together */
	struct insn last; /* the one that ended it; else class INSN_OTHER and size 0 */
};

/* Adds instructions to RUN, which began at BYTES and IP; N bytes can be read there. 0: the run has
 * ended, or has run->max instructions; else the result of insn_read() for the place behind
 * run->bytes. */
int insn_read_run(const struct insn_reader *r, enum insn_mode mode, uint64_t ip,
		  const uint8_t *bytes, size_t n, struct insn_run *run);
