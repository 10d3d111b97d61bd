/*
 * How insn.c reads the ordinary instructions without Zydis, private to insn*.c and their tests: the
 * reader (insn_quick.c) and the opcode maps as tables (insn_tables.c), after SDM volume 2,
 * appendix A.
 *
 * An instruction takes 8 to 10 ns by these tables, and 50 to 60 ns by Zydis in its minimal mode
 * (without operands). Without the tables, the first decode of 8 MiB of trace takes 22 % more
 * processor instructions for cc1, 8 % more for python3 and 1 to 2 % more for programs with little
 * code; the first decode of 1 MiB takes 29 % and 33 % more.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decoder/code/insn.h"

/* --- Reading --- */

/* Reads the instruction at BYTES, whose address is IP. False: the tables do not have it, or it is
 * longer than N bytes; *RET is then undefined. */
bool insn_quick_read(enum insn_mode mode, uint64_t ip, const uint8_t *bytes, size_t n,
		     struct insn *ret);
/* Continues the run as insn_read_run() does, up to an instruction that the tables do not have or
 * that begins within the last INSN_MAX_SIZE bytes. True: the run has ended. */
bool insn_quick_run(enum insn_mode mode, uint64_t ip, const uint8_t *bytes, size_t n,
		    struct insn_run *run);

/* --- The tables --- */

/* An opcode without VEX; 0: not for tables.
 *
 *  bits 0-3    bytes of its immediate
 *  bits 4-7    all set: it has ModRM (a mask for the length of that)
 *  bits 8-11   enum insn_class
 *  bit 12      the immediate is two bytes shorter with operands of 16 bits
 *  bit 13      it is four bytes longer with REX.W
 *  bits 16-19  mandatory prefixes (none, 66, F3, F2) that are valid if it has an operand in
 *              memory, or no ModRM
 *  bits 20-23  the same if that operand is a register
 *  bits 24-31  valid values of ModRM.reg
 *  bits 32-63  valid without prefixes but REX, by the upper five bits of ModRM; where it is not,
 *              there may be more to it than the table says
 */
#define QUICK_IMM	15u
#define QUICK_MODRM	4 /* where bits begin */
#define QUICK_CLASS	8
#define QUICK_SHRINKS	(1u << 12)
#define QUICK_GROWS	(1u << 13)
#define QUICK_MEMORY	16
#define QUICK_REGISTER	20
#define QUICK_REG_FIELD 24
#define QUICK_AT_ONCE	32
/* With any ModRM, and after any prefix. */
#define QUICK_ANY_MODRM (UINT64_C(0xffff) << QUICK_MEMORY | 15 << QUICK_MODRM)

enum quick_map { QUICK_MAP_64, QUICK_MAP_0F, QUICK_MAP_32, QUICK_MAP_0F38, QUICK_MAP_0F3A };

/* That of one byte is another in code of 64 bits than in code of 32. */
extern const uint64_t quick_maps[5][256];

/* An opcode with VEX: what is valid. 0: not for tables. */
#define VEX_W0	     (1u << 0)
#define VEX_W1	     (1u << 1)
#define VEX_L0	     (1u << 2)
#define VEX_L1	     (1u << 3)
#define VEX_MEMORY   (1u << 4) /* ModRM names memory */
#define VEX_REGISTER (1u << 5)
#define VEX_V_MEMORY (1u << 6) /* VEX.vvvv is an operand: else it is 1111 */
#define VEX_V_REG    (1u << 7)

/* By map (0F, 0F 38, 0F 3A), VEX.pp (none, 66, F3, F2) and opcode. */
extern const uint8_t quick_vex[3][4][256];
