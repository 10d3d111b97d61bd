/*
 * Translated blocks as the PMU sees them: where the instructions lie and how the last one can go
 * on. Found out once, at translation; kept for ever, since QEMU may call a block's callback as long
 * as its code lives, and the same block translated anew is given the same description.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum block_kind {
	BLOCK_NONE = 0, /* no block: before the first, in the kernel, stopped */
	BLOCK_PLAIN,	/* goes on at next, which is target, too */
	BLOCK_REP,	/* a repeated string instruction: entered anew for each round */
	BLOCK_COND,	/* target or next */
	BLOCK_JMP,	/* target; also a direct call of the next instruction */
	BLOCK_CALL,	/* target; next is the return address */
	BLOCK_RET,
	BLOCK_JMP_IND,
	BLOCK_CALL_IND,
	BLOCK_FAR,    /* far jump, call, return within user code */
	BLOCK_KERNEL, /* SYSCALL, INT n: to the kernel by its own doing */
	BLOCK_TRAP,   /* never completes (the vsyscall page) */
};

/* block.flags */
#define BLOCK_HANDLER 1u /* a signal handler begins here */
#define BLOCK_SINGLE  2u /* one plain instruction: maybe what is left of a block broken off */

struct block {
	uint64_t ip, last, next, target;
	uint16_t n;	 /* instructions */
	uint8_t kind;	 /* enum block_kind */
	uint8_t flags;	 /* written by others under the table's lock */
	uint32_t number; /* of the block, from 0 */
	struct block *chain;
	uint8_t length[]; /* of each instruction */
};

struct code; /* all blocks */

struct code *code_new(void);
void code_free(struct code *c);
/* In a forked child: another thread of the parent may have held the lock. */
void code_forked(struct code *c);

#define CODE_MAX_BLOCK 1024u
/* One translation: the instructions' lengths, and the bytes of the last one. */
struct code_block {
	uint64_t ip;
	size_t n;
	uint8_t length[CODE_MAX_BLOCK];
	const uint8_t *last_bytes;
};
/* The block described; QEMU 7.2 counts a last instruction that crosses into another page, with the
 * bytes up to there, and executes it in the next block: it is dropped. *ret_known: its class is
 * known. NULL: no memory, or no instruction. Thread safe. */
struct block *code_add(struct code *c, struct code_block *b, bool *ret_known);
/* IP is a signal handler: blocks there, now and later, are flagged. */
void code_add_handler(struct code *c, uint64_t ip);

/* The number of instructions of B before IP when one of them begins there; -1: none does. */
int block_index(const struct block *b, uint64_t ip);
