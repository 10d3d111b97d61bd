/*
 * The opcode maps of x86 as tables: one byte, 0F, 0F 38 and 0F 3A, and which of their opcodes are
 * valid behind a VEX prefix. Invalid and rare opcodes have no entry; insn.c asks Zydis for them.
 */
#include "decoder/code/insn_private.h"

/* Immediates. IZ has 4 bytes, or 2 with operands of 16 bits. IV is the same, but has 8 bytes with
 * REX.W. */
#define I1 1u
#define I2 2u
#define I3 3u
#define I4 4u
#define IZ (4u | QUICK_SHRINKS)
#define IV (IZ | QUICK_GROWS)

#define CLASS(c) ((uint32_t)INSN_##c << QUICK_CLASS)

/* Valid mandatory prefixes. */
#define NP  1u
#define P66 2u
#define PF3 4u
#define PF2 8u
#define P4  15u

/* MEMORY and REG: the prefixes that are valid with an operand in memory, and with one in a
 * register. REGS: the valid values of ModRM.reg. insn_quick.c knows more of a SPECIAL opcode than
 * the table says; but for the values of ModRM.reg in AT_ONCE the table says all. */
#define SPECIAL(memory, reg, regs)                                        \
	((uint64_t)((memory) << QUICK_MEMORY | (reg) << QUICK_REGISTER) | \
	 (uint64_t)(regs) << QUICK_REG_FIELD)
#define AT_ONCE(regs)	((regs)*UINT64_C(0x01010101) << QUICK_AT_ONCE)
#define IF_MEMORY(what) ((what)&UINT64_C(0x00ffffff) << QUICK_AT_ONCE)
#define IF_REG(what)	((what)&UINT64_C(0xff000000) << QUICK_AT_ONCE)
#define FORM(memory, reg, regs)                                                  \
	(SPECIAL(memory, reg, regs) | ((memory)&NP) * IF_MEMORY(AT_ONCE(regs)) | \
	 ((reg)&NP) * IF_REG(AT_ONCE(regs)))
#define MODRM (15u << QUICK_MODRM)

/* Opcodes without ModRM. X: only the mandatory prefixes P are valid. */
#define PLAIN X(P4)
#define X(p)  FORM(p, p, 0xff)
/* Opcodes with ModRM. MEM, MX_MEM: the operand must be in memory; MX_REG: it must be in a register.
 * MX2: the prefixes P are valid if it is in memory, Q if it is in a register. */
#define M	  MX(P4)
#define MEM	  MX_MEM(P4)
#define MX(p)	  MX2(p, p)
#define MX_MEM(p) MX2(p, 0)
#define MX_REG(p) MX2(0, p)
#define MX2(p, q) GROUP_X(p, q, 0xff)
/* Opcodes of which only the values REGS of ModRM.reg are valid. */
#define GROUP(regs)	    GROUP_X(P4, P4, regs)
#define GROUP_X(p, q, regs) (FORM(p, q, regs) | MODRM)
/* x87. MEMORY: the values of ModRM.reg that are valid with an operand in memory. REGS: the values
 * of which all forms with registers are valid. */
#define X87(memory, regs) (GROUP_X(P4, 0, memory) | IF_REG(AT_ONCE(regs)))

/* clang-format off */

/* add, or, adc, sbb, and, sub, xor, cmp; the rest of the column is by mode. */
#define ARITHMETIC(op) \
	[(op) ... (op) + 3] = M, \
	[(op) + 4] = PLAIN | I1, \
	[(op) + 5] = PLAIN | IZ

#define BOTH_MODES \
	ARITHMETIC(0x00), ARITHMETIC(0x08), ARITHMETIC(0x10), ARITHMETIC(0x18), \
	ARITHMETIC(0x20), ARITHMETIC(0x28), ARITHMETIC(0x30), ARITHMETIC(0x38), \
	[0x50 ... 0x5f] = PLAIN,		/* push, pop */ \
	[0x63] = M,				/* movsxd; arpl */ \
	[0x68] = PLAIN | IZ,			/* push */ \
	[0x69] = M | IZ,			/* imul */ \
	[0x6a] = PLAIN | I1, \
	[0x6b] = M | I1, \
	[0x6c ... 0x6f] = PLAIN,		/* ins, outs */ \
	[0x70 ... 0x7f] = PLAIN | I1 | CLASS(COND), \
	[0x80] = M | I1,			/* group 1 */ \
	[0x81] = M | IZ, \
	[0x83] = M | I1, \
	[0x84 ... 0x8b] = M,			/* test, xchg, mov */ \
	[0x8c] = GROUP(0x3f),			/* mov from segment registers */ \
	[0x8d] = MEM,				/* lea */ \
	[0x8e] = GROUP(0x3d),			/* mov to them, but not to cs */ \
	[0x8f] = GROUP(0x01),			/* pop */ \
	[0x90 ... 0x99] = PLAIN,		/* xchg, cbw, cwd */ \
	[0x9b ... 0x9f] = PLAIN,		/* fwait, pushf, popf, sahf, lahf */ \
	[0xa0 ... 0xa3] = SPECIAL(P4, P4, 0xff), \
	[0xa4 ... 0xa7] = PLAIN,		/* movs, cmps */ \
	[0xa8] = PLAIN | I1,			/* test */ \
	[0xa9] = PLAIN | IZ, \
	[0xaa ... 0xaf] = PLAIN,		/* stos, lods, scas */ \
	[0xb0 ... 0xb7] = PLAIN | I1,		/* mov */ \
	[0xb8 ... 0xbf] = PLAIN | IV, \
	[0xc0 ... 0xc1] = M | I1,		/* group 2 */ \
	[0xc2] = PLAIN | I2 | CLASS(RET), \
	[0xc3] = PLAIN | CLASS(RET), \
	[0xc6] = GROUP(0x01) | I1,		/* mov; xbegin and xabort are group 11 too */ \
	[0xc7] = GROUP(0x01) | IZ, \
	[0xc8] = PLAIN | I3,			/* enter */ \
	[0xc9] = PLAIN,				/* leave */ \
	[0xcc] = PLAIN | CLASS(SYSCALL),	/* int3, int */ \
	[0xcd] = PLAIN | I1 | CLASS(SYSCALL), \
	[0xd0 ... 0xd3] = M,			/* group 2 */ \
	[0xd7] = PLAIN,				/* xlat */ \
	[0xd8] = M,				/* x87 */ \
	[0xd9] = X87(0xfd, 0x03), \
	[0xda] = X87(0xff, 0x0f), \
	[0xdb] = X87(0xaf, 0x6f), \
	[0xdc] = X87(0xff, 0xf3), \
	[0xdd] = X87(0xdf, 0x3d), \
	[0xde] = X87(0xff, 0xf3), \
	[0xdf] = X87(0xff, 0x60), \
	[0xe0 ... 0xe3] = PLAIN | I1 | CLASS(COND), \
	[0xe4 ... 0xe7] = PLAIN | I1,		/* in, out */ \
	[0xe8] = PLAIN | I4 | CLASS(CALL), \
	[0xe9] = PLAIN | I4 | CLASS(JUMP), \
	[0xeb] = PLAIN | I1 | CLASS(JUMP), \
	[0xec ... 0xef] = PLAIN,		/* in, out */ \
	[0xf4 ... 0xf5] = PLAIN,		/* hlt, cmc */ \
	[0xf6] = SPECIAL(P4, P4, 0xff) | AT_ONCE(0x03) | MODRM | I1, \
	[0xf7] = SPECIAL(P4, P4, 0xff) | AT_ONCE(0x03) | MODRM | IZ, \
	[0xf8 ... 0xfd] = PLAIN,		/* clc ... std */ \
	[0xfe] = GROUP(0x03),			/* group 4 */ \
	[0xff] = SPECIAL(P4, P4, 0x57) | AT_ONCE(0x43) | MODRM

const uint64_t quick_maps[5][256] = {
[QUICK_MAP_64] = {
	BOTH_MODES,
},

[QUICK_MAP_32] = {
	BOTH_MODES,
	[0x06 ... 0x07] = PLAIN,		/* push, pop of segment registers */
	[0x0e] = PLAIN,
	[0x16 ... 0x17] = PLAIN,
	[0x1e ... 0x1f] = PLAIN,
	[0x27] = PLAIN,				/* daa, das, aaa, aas */
	[0x2f] = PLAIN,
	[0x37] = PLAIN,
	[0x3f] = PLAIN,
	[0x40 ... 0x4f] = PLAIN,		/* inc, dec */
	[0x60 ... 0x61] = PLAIN,		/* pusha, popa */
	[0xd4 ... 0xd5] = PLAIN | I1,		/* aam, aad */
},

[QUICK_MAP_0F] = {
	[0x05] = X(NP) | CLASS(SYSCALL),
	[0x0b] = X(NP),				/* ud2 */
	[0x10 ... 0x11] = MX(P4),		/* movups, movss, movupd, movsd */
	[0x12] = MX2(P4, NP | PF3 | PF2),	/* movlps, movhlps, movsldup, movddup */
	[0x13] = MX_MEM(NP | P66),
	[0x14 ... 0x15] = MX(NP | P66),		/* unpcklps, unpckhps */
	[0x16] = MX2(NP | P66 | PF3, NP | PF3),	/* movhps, movlhps, movshdup */
	[0x17] = MX_MEM(NP | P66),
	[0x18] = GROUP_X(NP, 0, 0x0f),	/* prefetch */
	[0x1e] = MX2(NP | P66, NP | P66 | PF3),	/* nop, endbr64 */
	[0x1f] = MX(P4),			/* nop */
	[0x28 ... 0x29] = MX(NP | P66),		/* movaps */
	[0x2a] = MX(P4),			/* cvtsi2ss */
	[0x2b] = MX_MEM(NP | P66),		/* movntps */
	[0x2c ... 0x2d] = MX(P4),		/* cvttss2si, cvtss2si */
	[0x2e ... 0x2f] = MX(NP | P66),		/* ucomiss, comiss */
	[0x30 ... 0x33] = X(NP),		/* wrmsr, rdtsc, rdmsr, rdpmc */
	[0x40 ... 0x4f] = MX(P4),		/* cmov */
	[0x50] = MX_REG(NP | P66),		/* movmskps */
	[0x51] = MX(P4),			/* sqrtps */
	[0x52 ... 0x53] = MX(NP | PF3),		/* rsqrtps, rcpps */
	[0x54 ... 0x57] = MX(NP | P66),		/* andps ... xorps */
	[0x58 ... 0x5a] = MX(P4),		/* addps, mulps, cvtps2pd */
	[0x5b] = MX(NP | P66 | PF3),		/* cvtdq2ps */
	[0x5c ... 0x5f] = MX(P4),		/* subps, minps, divps, maxps */
	[0x60 ... 0x6b] = MX(NP | P66),		/* punpcklbw ... packssdw */
	[0x6c ... 0x6d] = MX(P66),		/* punpcklqdq, punpckhqdq */
	[0x6e] = MX(NP | P66),			/* movd, movq */
	[0x6f] = MX(NP | P66 | PF3),		/* movdqa, movdqu */
	[0x70] = MX(P4) | I1,			/* pshufd */
	[0x71 ... 0x72] = GROUP_X(0, NP | P66, 0x54) | I1, /* groups 12 and 13: shifts */
	[0x73] = GROUP_X(0, P66, 0xcc) | I1, /* group 14 */
	[0x74 ... 0x76] = MX(NP | P66),		/* pcmpeqb */
	[0x77] = X(NP),				/* emms */
	[0x7c ... 0x7d] = MX(P66 | PF2),	/* haddps */
	[0x7e ... 0x7f] = MX(NP | P66 | PF3),	/* movd, movq, movdqa, movdqu */
	[0x80 ... 0x8f] = X(P4) | I4 | CLASS(COND),
	[0x90 ... 0x9f] = MX(P4),		/* set */
	[0xa0 ... 0xa2] = X(NP),		/* push fs, pop fs, cpuid */
	[0xa3] = MX(P4),			/* bt */
	[0xa4] = MX(P4) | I1,			/* shld */
	[0xa5] = MX(P4),
	[0xa8 ... 0xa9] = X(NP),		/* push gs, pop gs */
	[0xab] = MX(P4),			/* bts */
	[0xac] = MX(P4) | I1,			/* shrd */
	[0xad] = MX(P4),
	[0xae] = MX_MEM(NP),			/* group 15: fxsave ... clflush */
	[0xaf] = MX(P4),			/* imul */
	[0xb0 ... 0xb1] = MX(P4),		/* cmpxchg */
	[0xb3] = MX(P4),			/* btr */
	[0xb6 ... 0xb7] = MX(P4),		/* movzx */
	[0xb8] = MX(PF3),			/* popcnt */
	[0xba] = GROUP_X(P4, P4, 0xf0) | I1,	/* group 8: bt, bts, btr, btc */
	[0xbb] = MX(P4),			/* btc */
	[0xbc ... 0xbd] = MX(P4),		/* bsf, tzcnt, bsr, lzcnt */
	[0xbe ... 0xbf] = MX(P4),		/* movsx */
	[0xc0 ... 0xc1] = MX(P4),		/* xadd */
	[0xc2] = MX(P4) | I1,			/* cmpps */
	[0xc3] = MX_MEM(NP),			/* movnti */
	[0xc4] = MX(NP | P66) | I1,		/* pinsrw */
	[0xc5] = MX_REG(NP | P66) | I1,		/* pextrw */
	[0xc6] = MX(NP | P66) | I1,		/* shufps */
	[0xc7] = GROUP_X(NP, 0, 0x02),	/* group 9: cmpxchg8b, cmpxchg16b */
	[0xc8 ... 0xcf] = X(P4),		/* bswap */
	[0xd0] = MX(P66 | PF2),			/* addsubps */
	[0xd1 ... 0xd5] = MX(NP | P66),		/* psrlw ... pmullw */
	[0xd6] = MX(P66),			/* movq */
	[0xd7] = MX_REG(NP | P66),		/* pmovmskb */
	[0xd8 ... 0xe5] = MX(NP | P66),		/* psubusb ... pmulhw */
	[0xe6] = MX(P66 | PF3 | PF2),		/* cvttpd2dq */
	[0xe7] = MX_MEM(NP | P66),		/* movntdq */
	[0xe8 ... 0xef] = MX(NP | P66),		/* psubsb ... pxor */
	[0xf0] = MX_MEM(PF2),			/* lddqu */
	[0xf1 ... 0xf6] = MX(NP | P66),		/* psllw ... psadbw */
	[0xf7] = MX_REG(NP | P66),		/* maskmovq */
	[0xf8 ... 0xfe] = MX(NP | P66),		/* psubb ... paddd */
},

[QUICK_MAP_0F38] = {
	[0x00 ... 0x0b] = MX(NP | P66),		/* pshufb ... pmulhrsw */
	[0x10] = MX(P66),			/* pblendvb */
	[0x14 ... 0x15] = MX(P66),		/* blendvps */
	[0x17] = MX(P66),			/* ptest */
	[0x1c ... 0x1e] = MX(NP | P66),		/* pabsb */
	[0x20 ... 0x25] = MX(P66),		/* pmovsxbw */
	[0x28 ... 0x29] = MX(P66),		/* pmuldq, pcmpeqq */
	[0x2a] = MX_MEM(P66),			/* movntdqa */
	[0x2b] = MX(P66),			/* packusdw */
	[0x30 ... 0x35] = MX(P66),		/* pmovzxbw */
	[0x37 ... 0x41] = MX(P66),		/* pcmpgtq ... phminposuw */
	[0xc8 ... 0xcd] = MX(NP),		/* sha1nexte ... sha256msg2 */
	[0xdb ... 0xdf] = MX(P66),		/* aes */
	[0xf0 ... 0xf1] = MX2(NP | P66 | PF2, PF2), /* movbe, crc32 */
	[0xf6] = MX(P66 | PF3),			/* adcx, adox */
},

[QUICK_MAP_0F3A] = {
	[0x08 ... 0x0e] = MX(P66) | I1,		/* roundps ... pblendw */
	[0x0f] = MX(NP | P66) | I1,		/* palignr */
	[0x14 ... 0x17] = MX(P66) | I1,		/* pextrb ... extractps */
	[0x20 ... 0x22] = MX(P66) | I1,		/* pinsrb, insertps, pinsrd */
	[0x40 ... 0x42] = MX(P66) | I1,		/* dpps, mpsadbw */
	[0x44] = MX(P66) | I1,			/* pclmulqdq */
	[0x60 ... 0x63] = MX(P66) | I1,		/* pcmpestrm */
	[0xcc] = MX(NP) | I1,			/* sha1rnds4 */
	[0xdf] = MX(P66) | I1,			/* aeskeygenassist */
},
};

/* --- Behind a VEX prefix ---
 *
 * These tables say only what is valid. An opcode of map 0F is as long as without VEX. An opcode of
 * 0F 38 has no immediate, and one of 0F 3A always has an immediate of one byte. */

#define NO_PREFIX 0
#define BY_66	  1
#define BY_F3	  2
#define BY_F2	  3

#define ANY_W  (VEX_W0 | VEX_W1)
#define ANY_L  (VEX_L0 | VEX_L1)
#define ANY_RM (VEX_MEMORY | VEX_REGISTER)
#define V      (VEX_V_MEMORY | VEX_V_REG)
/* Two operands (ModRM.reg and ModRM.rm), or three (with VEX.vvvv). */
#define TWO	(ANY_W | ANY_L | ANY_RM)
#define THREE	(TWO | V)
#define MEMORY	(ANY_W | ANY_L | VEX_MEMORY)
#define REGS	(ANY_W | ANY_L | VEX_REGISTER)
#define LOW(f)	((f) & ~VEX_L1) /* of 128 bits only */
#define HIGH(f) ((f) & ~VEX_L0)
#define W0(f)	((f) & ~VEX_W1)
#define W1(f)	((f) & ~VEX_W0)
/* Two operands if one is in memory, three if all are registers. */
#define SCALAR (TWO | VEX_V_REG)

/* clang-format off */

/* Floating point: packed single and double; scalar single and double. */
#define PACKED_0F \
	[0x10 ... 0x11] = TWO,			/* vmovups */ \
	[0x13] = LOW(MEMORY),			/* vmovlps */ \
	[0x14 ... 0x15] = THREE,		/* vunpcklps */ \
	[0x17] = LOW(MEMORY),			/* vmovhps */ \
	[0x28 ... 0x29] = TWO,			/* vmovaps */ \
	[0x2b] = MEMORY,			/* vmovntps */ \
	[0x2e ... 0x2f] = TWO,			/* vucomiss, vcomiss */ \
	[0x50] = REGS,				/* vmovmskps */ \
	[0x51] = TWO,				/* vsqrtps */ \
	[0x54 ... 0x59] = THREE,		/* vandps ... vmulps */ \
	[0x5a ... 0x5b] = TWO,			/* vcvtps2pd, vcvtdq2ps */ \
	[0x5c ... 0x5f] = THREE,		/* vsubps ... vmaxps */ \
	[0xc2] = THREE,				/* vcmpps */ \
	[0xc6] = THREE				/* vshufps */

#define SCALAR_0F \
	[0x10 ... 0x11] = SCALAR,		/* vmovss */ \
	[0x12] = TWO,				/* vmovsldup, vmovddup */ \
	[0x2a] = THREE,				/* vcvtsi2ss */ \
	[0x2c ... 0x2d] = TWO,			/* vcvttss2si */ \
	[0x51] = THREE,				/* vsqrtss */ \
	[0x58 ... 0x5a] = THREE,		/* vaddss, vmulss, vcvtss2sd */ \
	[0x5c ... 0x5f] = THREE,		/* vsubss ... vmaxss */ \
	[0x70] = TWO,				/* vpshufhw, vpshuflw */ \
	[0xc2] = THREE,				/* vcmpss */ \
	[0xe6] = TWO				/* vcvtdq2pd */

const uint8_t quick_vex[3][4][256] = {
{ /* 0F */
	[NO_PREFIX] = {
		PACKED_0F,
		[0x12] = LOW(THREE),		/* vmovlps, vmovhlps */
		[0x16] = LOW(THREE),		/* vmovhps, vmovlhps */
		[0x52 ... 0x53] = TWO,		/* vrsqrtps, vrcpps */
		[0x77] = TWO,			/* vzeroupper, vzeroall */
	},
	[BY_66] = {
		PACKED_0F,
		[0x12] = LOW(MEMORY | V),	/* vmovlpd */
		[0x16] = LOW(MEMORY | V),	/* vmovhpd */
		[0x60 ... 0x6d] = THREE,	/* vpunpcklbw ... vpunpckhqdq */
		[0x6e] = LOW(TWO),		/* vmovd, vmovq */
		[0x6f] = TWO,			/* vmovdqa */
		[0x70] = TWO,			/* vpshufd */
		[0x71 ... 0x73] = REGS | V,	/* groups 12 to 14 */
		[0x74 ... 0x76] = THREE,	/* vpcmpeqb */
		[0x7c ... 0x7d] = THREE,	/* vhaddpd */
		[0x7e] = LOW(TWO),		/* vmovd, vmovq */
		[0x7f] = TWO,			/* vmovdqa */
		[0xc4] = LOW(THREE),		/* vpinsrw */
		[0xc5] = LOW(REGS),		/* vpextrw */
		[0xd0 ... 0xd5] = THREE,	/* vaddsubpd ... vpmullw */
		[0xd6] = LOW(TWO),		/* vmovq */
		[0xd7] = REGS,			/* vpmovmskb */
		[0xd8 ... 0xe5] = THREE,	/* vpsubusb ... vpmulhw */
		[0xe6] = TWO,			/* vcvttpd2dq */
		[0xe7] = MEMORY,		/* vmovntdq */
		[0xe8 ... 0xef] = THREE,	/* vpsubsb ... vpxor */
		[0xf1 ... 0xf6] = THREE,	/* vpsllw ... vpsadbw */
		[0xf7] = LOW(REGS),		/* vmaskmovdqu */
		[0xf8 ... 0xfe] = THREE,	/* vpsubb ... vpaddd */
	},
	[BY_F3] = {
		SCALAR_0F,
		[0x16] = TWO,			/* vmovshdup */
		[0x52 ... 0x53] = THREE,	/* vrsqrtss, vrcpss */
		[0x5b] = TWO,			/* vcvttps2dq */
		[0x6f] = TWO,			/* vmovdqu */
		[0x7e] = LOW(TWO),		/* vmovq */
		[0x7f] = TWO,			/* vmovdqu */
	},
	[BY_F2] = {
		SCALAR_0F,
		[0x7c ... 0x7d] = THREE,	/* vhaddps */
		[0xd0] = THREE,			/* vaddsubps */
		[0xf0] = MEMORY,		/* vlddqu */
	},
},
{ /* 0F 38 */
	[NO_PREFIX] = {
		[0xf2] = LOW(THREE),		/* andn */
		[0xf5] = LOW(THREE),		/* bzhi */
		[0xf7] = LOW(THREE),		/* bextr */
	},
	[BY_66] = {
		[0x00 ... 0x0b] = THREE,	/* vpshufb ... vpmulhrsw */
		[0x0c ... 0x0d] = W0(THREE),	/* vpermilps */
		[0x0e ... 0x0f] = W0(TWO),	/* vtestps */
		[0x13] = W0(TWO),		/* vcvtph2ps */
		[0x16] = W0(HIGH(THREE)),	/* vpermps */
		[0x17] = TWO,			/* vptest */
		[0x18] = W0(TWO),		/* vbroadcastss */
		[0x19] = W0(HIGH(TWO)),		/* vbroadcastsd */
		[0x1a] = W0(HIGH(MEMORY)),	/* vbroadcastf128 */
		[0x1c ... 0x1e] = TWO,		/* vpabsb */
		[0x20 ... 0x25] = TWO,		/* vpmovsxbw */
		[0x28 ... 0x29] = THREE,	/* vpmuldq, vpcmpeqq */
		[0x2a] = MEMORY,		/* vmovntdqa */
		[0x2b] = THREE,			/* vpackusdw */
		[0x2c ... 0x2f] = W0(MEMORY | V), /* vmaskmovps */
		[0x30 ... 0x35] = TWO,		/* vpmovzxbw */
		[0x36] = W0(HIGH(THREE)),	/* vpermd */
		[0x37 ... 0x40] = THREE,	/* vpcmpgtq ... vpmulld */
		[0x41] = LOW(TWO),		/* vphminposuw */
		[0x45] = THREE,			/* vpsrlvd */
		[0x46] = W0(THREE),		/* vpsravd */
		[0x47] = THREE,			/* vpsllvd */
		[0x58 ... 0x59] = W0(TWO),	/* vpbroadcastd */
		[0x5a] = W0(HIGH(MEMORY)),	/* vbroadcasti128 */
		[0x78 ... 0x79] = W0(TWO),	/* vpbroadcastb */
		[0x8c] = MEMORY | V,		/* vpmaskmovd */
		[0x8e] = MEMORY | V,
		[0x96 ... 0x9f] = THREE,	/* vfmaddsub132ps ... */
		[0xa6 ... 0xaf] = THREE,
		[0xb6 ... 0xbf] = THREE,
		[0xdb] = LOW(TWO),		/* vaesimc */
		[0xdc ... 0xdf] = THREE,	/* vaesenc ... vaesdeclast */
		[0xf7] = LOW(THREE),		/* shlx */
	},
	[BY_F3] = {
		[0xf5] = LOW(THREE),		/* pext */
		[0xf7] = LOW(THREE),		/* sarx */
	},
	[BY_F2] = {
		[0xf5] = LOW(THREE),		/* pdep */
		[0xf6] = LOW(THREE),		/* mulx */
		[0xf7] = LOW(THREE),		/* shrx */
	},
},
{ /* 0F 3A */
	[BY_66] = {
		[0x00 ... 0x01] = W1(HIGH(TWO)), /* vpermq, vpermpd */
		[0x02] = W0(THREE),		/* vpblendd */
		[0x04 ... 0x05] = W0(TWO),	/* vpermilps */
		[0x06] = W0(HIGH(THREE)),	/* vperm2f128 */
		[0x08 ... 0x09] = TWO,		/* vroundps */
		[0x0a ... 0x0f] = THREE,	/* vroundss, vblendps ... vpalignr */
		[0x14 ... 0x17] = LOW(TWO),	/* vpextrb ... vextractps */
		[0x18] = W0(HIGH(THREE)),	/* vinsertf128 */
		[0x19] = W0(HIGH(TWO)),		/* vextractf128 */
		[0x1d] = W0(TWO),		/* vcvtps2ph */
		[0x20 ... 0x22] = LOW(THREE),	/* vpinsrb, vinsertps, vpinsrd */
		[0x38] = W0(HIGH(THREE)),	/* vinserti128 */
		[0x39] = W0(HIGH(TWO)),		/* vextracti128 */
		[0x40] = THREE,			/* vdpps */
		[0x41] = LOW(THREE),		/* vdppd */
		[0x42] = THREE,			/* vmpsadbw */
		[0x44] = THREE,			/* vpclmulqdq */
		[0x46] = W0(HIGH(THREE)),	/* vperm2i128 */
		[0x4a ... 0x4c] = W0(THREE),	/* vblendvps */
		[0x60 ... 0x63] = LOW(TWO),	/* vpcmpestrm */
		[0xdf] = LOW(TWO),		/* vaeskeygenassist */
	},
	[BY_F2] = {
		[0xf0] = LOW(TWO),		/* rorx */
	},
},
};
