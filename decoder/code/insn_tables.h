/*
 * The opcode maps as tables: for each opcode what an instruction with it is made of, as far as it
 * is ordinary. Written after SDM volume 2, appendix A. Read by insn_quick.c.
 */
#pragma once

#include <stdint.h>

#include "decoder/code/insn.h"

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
