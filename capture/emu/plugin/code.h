/*
 * Translated blocks: where their instructions lie and how the last instruction can continue.
 *
 * A block is classified once, when QEMU translates it. The description is never freed: QEMU may run
 * the block, and so call the plugin with the description, as long as the translated code lives. A
 * block that QEMU translates again gets the same description.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum block_kind {
	BLOCK_NONE = 0, /* no block: before the first one, in the kernel, while tracing is off */
	BLOCK_PLAIN,	/* no branch: continues at next; target is the same address */
	BLOCK_REP,	/* a repeated string instruction: QEMU enters it for each repetition */
	BLOCK_COND,	/* a conditional branch to target or next */
	BLOCK_JMP,	/* a direct jump to target; also a direct call of the next instruction */
	BLOCK_CALL,	/* a direct call of target; next is the return address */
	BLOCK_RET,
	BLOCK_JMP_IND,
	BLOCK_CALL_IND,
	BLOCK_FAR,    /* a far jump, call or return within user code */
	BLOCK_KERNEL, /* SYSCALL, INT n: the instruction enters the kernel */
	BLOCK_TRAP,   /* never completes (code in the vsyscall page) */
};

/* block.flags */
#define BLOCK_HANDLER 1u /* a handler of signals, or of interrupts or exceptions, begins here */
#define BLOCK_SINGLE \
	2u /* one plain instruction: perhaps the continuation of a block that ended early */
#define BLOCK_CR3   4u	  /* the last instruction writes CR3 */
#define BLOCK_CLOCK 8u	  /* an instruction reads the TSC */
#define BLOCK_IFLAG 0x10u /* an instruction writes RFLAGS.IF: CLI, STI, POPF */
#define BLOCK_HALT  0x20u /* the last instruction is HLT */

struct block {
	uint64_t ip;	 /* of the first instruction */
	uint64_t last;	 /* of the last instruction */
	uint64_t next;	 /* behind the last instruction */
	uint64_t target; /* of the branch at the end, if it is direct */
	uint16_t n;	 /* instructions */
	uint8_t kind;	 /* enum block_kind */
	uint8_t flags;	 /* BLOCK_*; other threads change them under the table's lock */
	uint32_t number; /* blocks are numbered from 0 */
	struct block *chain;
	uint16_t iflag;	   /* BLOCK_IFLAG: instructions up to the last one of that kind */
	uint8_t last_size; /* of the last instruction's bytes; 0: they are not known */
	uint8_t length[];  /* of each instruction; behind them, the bytes of the last one */
};

struct code; /* all blocks of a process */

/* NULL: no memory. Free the result with code_free(). */
struct code *code_new(void);
void code_free(struct code *c);
/* Call in a forked child: another thread of the parent may have held the lock. */
void code_forked(struct code *c);

#define CODE_MAX_BLOCK 1024u
/* One translated block, as QEMU describes it. LENGTH: bytes of each instruction. LAST_BYTES: bytes
 * of the last instruction, borrowed. */
struct code_block {
	uint64_t ip;
	size_t n;
	uint8_t length[CODE_MAX_BLOCK];
	const uint8_t *last_bytes;
	bool compat;	  /* 32-bit code */
	bool reads_clock; /* sets BLOCK_CLOCK */
	uint16_t iflag;	  /* not 0: sets BLOCK_IFLAG; as in struct block */
};
/* Returns the description of block B, which the table owns. Where the last instruction crosses a
 * page boundary, QEMU 7.2 counts it here with its bytes up to the boundary, but executes it in the
 * next block; code_add() drops such an instruction. *RET_KNOWN: Zydis knows the last instruction.
 * NULL: no memory, or no instruction. Thread safe. */
struct block *code_add(struct code *c, struct code_block *b, bool *ret_known);
/* A handler begins at IP: sets BLOCK_HANDLER in all present and later blocks there. At most 256
 * handlers. Thread safe. */
void code_add_handler(struct code *c, uint64_t ip);

/* Whether the last instruction is an IRET. */
bool block_is_iret(const struct block *b);
/* Index of the instruction of B that begins at IP, or -1. */
int block_index(const struct block *b, uint64_t ip);
