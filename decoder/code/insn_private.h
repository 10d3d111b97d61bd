/*
 * Reads ordinary instructions without Zydis. Private to insn*.c and their tests. insn_quick.c is
 * the reader; insn_tables.c has the opcode maps as tables, after SDM volume 2, appendix A.
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

/* The entry of an opcode without VEX. 0: the tables do not have the opcode.
 *
 *  bits 0-3    length of the immediate in bytes
 *  bits 4-7    all set if the opcode has ModRM: a mask for the length of ModRM, SIB and
 *              displacement
 *  bits 8-11   enum insn_class
 *  bit 12      the immediate is two bytes shorter with operands of 16 bits
 *  bit 13      the immediate is four bytes longer with REX.W
 *  bits 16-19  mandatory prefixes (none, 66, F3, F2) that are valid if the opcode has an operand
 *              in memory, or no ModRM
 *  bits 20-23  the same if that operand is a register
 *  bits 24-31  valid values of ModRM.reg
 *  bits 32-63  one bit for each value of the upper five bits of ModRM. Set: the opcode is valid
 *              without prefixes other than REX. Clear: there may be more to the opcode than its
 *              entry says
 */
#define QUICK_IMM	15u
#define QUICK_MODRM	4 /* number of the first bit, as of those below */
#define QUICK_CLASS	8
#define QUICK_SHRINKS	(1u << 12)
#define QUICK_GROWS	(1u << 13)
#define QUICK_MEMORY	16
#define QUICK_REGISTER	20
#define QUICK_REG_FIELD 24
#define QUICK_AT_ONCE	32
/* Valid with any ModRM and any mandatory prefix. */
#define QUICK_ANY_MODRM (UINT64_C(0xffff) << QUICK_MEMORY | 15 << QUICK_MODRM)

enum quick_map { QUICK_MAP_64, QUICK_MAP_0F, QUICK_MAP_32, QUICK_MAP_0F38, QUICK_MAP_0F3A };

/* Indexed by map and opcode. The map of one-byte opcodes differs between code of 64 bits and of 32
 * bits. */
extern const uint64_t quick_maps[5][256];

/* The entry of an opcode with VEX: the forms that are valid. 0: the tables do not have it. */
#define VEX_W0	     (1u << 0)
#define VEX_W1	     (1u << 1)
#define VEX_L0	     (1u << 2)
#define VEX_L1	     (1u << 3)
#define VEX_MEMORY   (1u << 4) /* ModRM names memory */
#define VEX_REGISTER (1u << 5)
#define VEX_V_MEMORY (1u << 6) /* VEX.vvvv may be an operand beside memory; else it is 1111 */
#define VEX_V_REG    (1u << 7)

/* Indexed by map (0F, 0F 38, 0F 3A), VEX.pp (none, 66, F3, F2) and opcode. */
extern const uint8_t quick_vex[3][4][256];
