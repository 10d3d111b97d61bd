/*
 * The layout of ptsnap-walk: one list of labels for the program (walk_program.S) and for its model
 * (walk_model.c). The program places each label with .org, so a label that does not fit breaks the
 * build. The assembler reads this file too: only preprocessor lines and comments.
 */
#pragma once

/* The addresses of text and far text. Between them, indirect branches need packets with 2, 4 and 6
 * bytes of address. */
#define WALK_TEXT     0x10001000
#define WALK_FAR_TEXT 0x720000000

/* A round first shows the lowest byte of the seed, and below it these bits of its number. */
#define WALK_ROUND_BITS 32
#define WALK_SHOWN_BITS 40

/* X(label, offset in the text), in the order of the offsets. A label that ends in _AT is a branch,
 * and may also be a target. */
#define WALK_LABELS(X)            \
	X(ROUND, 0x000)           \
	X(BIT, 0x020)             \
	X(BIT_AT, 0x030)          \
	X(ZERO, 0x040)            \
	X(BIT_LOOP_AT, 0x050)     \
	X(STEP, 0x0e0)            \
	X(DISPATCH_AT, 0x110)     \
	X(COND, 0x120)            \
	X(COND_A_AT, 0x130)       \
	X(COND_B, 0x140)          \
	X(COND_B_AT, 0x150)       \
	X(COND_C, 0x160)          \
	X(COND_C_AT, 0x170)       \
	X(COND_END_AT, 0x180)     \
	X(LOOP, 0x190)            \
	X(LOOP_TOP, 0x1a0)        \
	X(LOOP_JNZ_AT, 0x1b0)     \
	X(LOOP_END_AT, 0x1c0)     \
	X(COUNT, 0x1d0)           \
	X(COUNT_TOP, 0x1e0)       \
	X(COUNT_LOOP_AT, 0x1f0)   \
	X(COUNT_JRCXZ_AT, 0x210)  \
	X(COUNT_END_AT, 0x220)    \
	X(CALL, 0x230)            \
	X(CALL_AT, 0x240)         \
	X(CALL_END_AT, 0x250)     \
	X(NEST, 0x260)            \
	X(NEST_AT, 0x270)         \
	X(NEST_END_AT, 0x280)     \
	X(RECURSE, 0x290)         \
	X(RECURSE_DEEP_AT, 0x2b0) \
	X(RECURSE_AT, 0x2c0)      \
	X(RECURSE_END_AT, 0x2d0)  \
	X(ICALL, 0x2e0)           \
	X(ICALL_AT, 0x2f0)        \
	X(ICALL_END_AT, 0x300)    \
	X(SWITCH, 0x310)          \
	X(SWITCH_AT, 0x320)       \
	X(CASE_0, 0x330)          \
	X(CASE_0_AT, 0x340)       \
	X(CASE_1_AT, 0x350)       \
	X(EXCHANGE, 0x360)        \
	X(EXCHANGE_AT, 0x370)     \
	X(EXCHANGE_TO, 0x380)     \
	X(EXCHANGE_END_AT, 0x390) \
	X(SKIP, 0x3a0)            \
	X(SKIP_AT, 0x3b0)         \
	X(SKIP_END_AT, 0x3c0)     \
	X(PUSH, 0x3d0)            \
	X(PUSH_RET_AT, 0x3e0)     \
	X(PUSH_TO, 0x3f0)         \
	X(PUSH_END_AT, 0x400)     \
	X(HERE, 0x410)            \
	X(HERE_AT, 0x420)         \
	X(HERE_END_AT, 0x430)     \
	X(SYSCALL, 0x440)         \
	X(SYSCALL_JNZ_AT, 0x450)  \
	X(SYSCALL_AT, 0x460)      \
	X(SYSCALL_END_AT, 0x470)  \
	X(REGISTER, 0x480)        \
	X(REGISTER_AT, 0x490)     \
	X(REGISTER_END_AT, 0x4a0) \
	X(SHORT, 0x4b0)           \
	X(SHORT_AT, 0x4c0)        \
	X(SHORT_TO, 0x4d0)        \
	X(SHORT_END_AT, 0x4e0)    \
	X(STEP_END, 0x580)        \
	X(STEP_LOOP_AT, 0x590)    \
	X(LAST_AT, 0x5a0)         \
	X(AGAIN_AT, 0x5b0)        \
	X(EXIT, 0x5c0)            \
	X(EXIT_AT, 0x5d0)         \
	X(ASIDE, 0x600)           \
	X(ASIDE_AT, 0x610)        \
	X(LEAF, 0x620)            \
	X(LEAF_RET_AT, 0x630)     \
	X(NEST_1_AT, 0x640)       \
	X(NEST_1_RET_AT, 0x650)   \
	X(NEST_2_AT, 0x660)       \
	X(NEST_2_RET_AT, 0x670)   \
	X(SELF, 0x680)            \
	X(SELF_JZ_AT, 0x690)      \
	X(SELF_AT, 0x6a0)         \
	X(SELF_RET_AT, 0x6b0)     \
	X(TAIL, 0x6c0)            \
	X(TAIL_AT, 0x6d0)         \
	X(SWAP, 0x6e0)            \
	X(SWAP_RET_AT, 0x6f0)     \
	X(OVER_AT, 0x700)         \
	X(DROP, 0x710)            \
	X(DROP_RET_AT, 0x720)

/* The same for the far text. */
#define WALK_FAR_LABELS(X)   \
	X(FAR_LEAF, 0x000)   \
	X(FAR_RET_AT, 0x010) \
	X(FAR_CASE, 0x020)   \
	X(FAR_CASE_AT, 0x030)
